/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* One file without scripts and without anything from elsewhere. What gnuplot draws in black takes
 * the colour of the page's text. */

#include <stdlib.h>
#include <string.h>

#include "tools/experiment/experiment_report.h"

enum { CELLS = 12 };

static const char head[] =
    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<style>\n"
    ":root{color-scheme:light dark;--ink:#1c1e21;--dim:#5c636b;--paper:#fff;--line:#d5d9de;"
    "--bad:#b3132b;--badback:#fdecee}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#e6e8ea;--dim:#9aa2ab;--paper:#15181b;"
    "--line:#3a4047;--bad:#ff8090;--badback:#3a1d22}}\n"
    "body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);"
    "max-width:60rem;margin:2rem auto;padding:0 1rem}\n"
    "h1{font-size:1.5rem;margin-bottom:.5rem}h2{font-size:1.1rem;margin:2.5rem 0 .5rem}\n"
    ".answer{font-size:1.2rem;border-left:4px solid #2b8cbe;padding-left:1rem}\n"
    ".dim{color:var(--dim);font-size:.9rem}code{font-size:.9em;overflow-wrap:anywhere}\n"
    ".bad,tr.bad td{color:var(--bad)}tr.bad td{background:var(--badback)}\n"
    "figure{margin:0}figure svg{width:100%;height:auto;display:block}\n"
    "figure svg [fill=black],figure svg [fill=\"rgb(0,0,0)\"]{fill:var(--ink)}figure svg "
    "[color=black]{color:var(--ink)}\n"
    ".wide{overflow-x:auto}table{border-collapse:collapse;font-size:.85rem;margin:.5rem 0}\n"
    "th,td{padding:.15rem .7rem;border-bottom:1px solid var(--line);text-align:right;"
    "white-space:nowrap}th:first-child,td:first-child{text-align:left}\n"
    ".why td{text-align:left;white-space:normal}\n"
    "@media print{:root{--ink:#000;--paper:#fff;--dim:#333;--bad:#a00018;--badback:#fff}"
    "body{max-width:none;margin:0}section,tr{break-inside:avoid}.wide{overflow:visible}"
    "table{font-size:.65rem}th,td{padding:.15rem .3rem}th{white-space:normal}"
    "td:last-child{white-space:normal;overflow-wrap:anywhere}}\n"
    "</style>\n";

static void put_text(const char *text, FILE *file) {
  for (; *text != '\0'; text++) {
    switch (*text) {
    case '&':
      fputs("&amp;", file);
      break;
    case '<':
      fputs("&lt;", file);
      break;
    case '>':
      fputs("&gt;", file);
      break;
    case '"':
      fputs("&quot;", file);
      break;
    default:
      fputc(*text, file);
    }
  }
}

static void put_element(const char *begin, const char *text, const char *end, FILE *file) {
  fputs(begin, file);
  put_text(text, file);
  fputs(end, file);
}

static void put_table(const char *table, bool losses_only, FILE *file) {
  char *copy = strdup(table), *at = copy, *cells[CELLS];
  bool loss = false, first = true;
  fputs("<div class=\"wide\"><table>\n", file);
  for (size_t count; copy && (count = experiment_report_row(&at, cells, CELLS, &loss)) > 0;) {
    if (losses_only && !loss && !first) {
      continue;
    }
    fputs(loss ? "<tr class=\"bad\">" : "<tr>", file);
    for (size_t i = 0; i < count; i++) {
      put_element(first ? "<th>" : "<td>", cells[i], first ? "</th>" : "</td>", file);
    }
    fputs("</tr>\n", file);
    first = false;
  }
  fputs("</table></div>\n", file);
  free(copy);
}

static void put_picture(const experiment_report *of, size_t i, FILE *file) {
  const experiment_picture *it = &of->pictures.list[i];
  fputs("<section>\n", file);
  put_element("<h2>", it->title, "</h2>\n", file);
  if (of->drawn[i]) {
    fprintf(file, "<figure>%s</figure>\n<p class=\"dim\">Made by <code>gnuplot ", of->drawn[i]);
    fprintf(file, "pictures/%s.gp</code>.</p>\n", it->name);
  } else {
    fputs("<p class=\"bad\">gnuplot could not draw this picture; is it installed?</p>\n", file);
  }
  fputs("</section>\n", file);
  put_table(it->table, false, file);
}

/* Every case where compression lost. */
static void put_losses(const experiment_report *of, FILE *file) {
  bool any = false;
  for (size_t i = 0; i < of->pictures.count; i++) {
    const experiment_picture *it = &of->pictures.list[i];
    bool again = i + 1 < of->pictures.count && strcmp(it->table, it[1].table) == 0;
    if (!strstr(it->table, "\n!") || again) {
      continue;
    }
    if (!any) {
      fputs("<h2 class=\"bad\">Where compression lost</h2>\n", file);
    }
    any = true;
    put_element("<p class=\"dim\">", it->title, "</p>\n", file);
    put_table(it->table, true, file);
  }
}

static void put_failures(const experiment_report *of, FILE *file) {
  if (of->failed == 0) {
    return;
  }
  fputs("<h2 class=\"bad\">Runs that failed</h2>\n<table class=\"why\">\n", file);
  for (size_t i = 0; i < of->of->count; i++) {
    if (of->of->results[i].state == EXPERIMENT_FAILED) {
      put_element("<tr class=\"bad\"><td>", of->of->cases[i].name, "</td>", file);
      put_element("<td>", of->of->results[i].why, "</td></tr>\n", file);
    }
  }
  fputs("</table>\n", file);
}

static void put_origin(const experiment_report *of, FILE *file) {
  char text[4096];
  fprintf(file, "<p class=\"dim\">%zu runs have results, ", of->good);
  fprintf(file, "<span%s>%zu failed</span>, %zu have not run. ",
          of->failed > 0 ? " class=\"bad\"" : "", of->failed, of->missing);
  bool mixed = experiment_report_machines(of->of, text, sizeof text) > 1;
  put_element(mixed ? "<span class=\"bad\">Machines are mixed: " : "<span>Machine: ", text,
              ".</span> ", file);
  experiment_report_commits(of->of, text, sizeof text);
  put_element("Commit ", text, ". ", file);
  put_element("Made by <code>libcomm-experiment ", of->of->options->file, "</code>. ", file);
  fputs("Figures of emulated links come from <code>tools/cluster</code>, whose hosts share this "
        "machine's processors.</p>\n",
        file);
}

void experiment_report_html(const experiment_report *of, FILE *file) {
  const char *title = of->of->file.title[0] ? of->of->file.title : of->of->options->file;
  fputs(head, file);
  put_element("<title>", title, "</title></head><body>\n", file);
  put_element("<h1>", title, "</h1>\n<p class=\"answer\">", file);
  for (size_t i = 0; i < EXPERIMENT_SENTENCES; i++) {
    put_element("", of->answer.sentences[i], " ", file);
  }
  fputs("</p>\n", file);
  put_origin(of, file);
  put_failures(of, file);
  put_losses(of, file);
  for (size_t i = 0; i < of->pictures.count; i++) {
    put_picture(of, i, file);
  }
  fputs("</body></html>\n", file);
}
