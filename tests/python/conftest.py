# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""One line for each property, as tests/run counts them: PASS, FAIL or SKIP, its name, why."""


def _name(report):
    return report.nodeid.split("::")[-1].replace("test_", "", 1).replace(" ", "_")


def _why(report):
    if report.skipped and isinstance(report.longrepr, tuple):
        return report.longrepr[2]
    message = getattr(getattr(report.longrepr, "reprcrash", None), "message", str(report.longrepr))
    return " ".join(message.split())[:600]


def _say(words):
    print(words, flush=True)


def pytest_runtest_logreport(report):
    if report.skipped:
        _say(f"SKIP {_name(report)}: {_why(report).replace('Skipped: ', '')}")
    elif report.failed:
        _say(f"FAIL {_name(report)}: {_why(report)}")
    elif report.when == "call":
        _say(f"PASS {_name(report)}")


def pytest_collectreport(report):
    if report.failed:
        _say(f"FAIL {report.nodeid or 'collection'}: {_why(report)}")
    elif report.skipped:
        _say(f"SKIP {report.nodeid}: {_why(report).replace('Skipped: ', '')}")


def pytest_report_teststatus(report):
    """Nothing of pytest's own: no letters and no words."""
    return report.outcome, "", ""
