/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The loops of codec_roofline.c for one instruction set, written once for all. The file that
 * includes this, once for each, defines ISA(name), the names of that set, TARGET, its attribute,
 * and ISA(line), which moves one line. */

TARGET ALWAYS_INLINE void ISA(loop)(shape kind, stores how, const char *source, char *destination,
                                    size_t units) {
  const unit_lines lines = lines_of[kind];
  const size_t reads = lines.reads > lines.writes ? lines.reads / lines.writes : 1;
  for (size_t u = 0; u < units; u++) {
    if (how == STREAMED) {
      prefetch_unit(lines, source);
    }
    for (size_t line = 0; line < lines.writes; line++) {
      const char *from = source + line * lines.reads / lines.writes * LINE;
      ISA(line)(reads, how, from, destination + line * LINE);
    }
    source += lines.reads * LINE;
    destination += lines.writes * LINE;
  }
}

TARGET ALWAYS_INLINE void ISA(paths)(shape kind, stores how, const char *source, char *destination,
                                     size_t units) {
  if (how == STREAMED) {
    ISA(loop)(kind, STREAMED, source, destination, units);
  } else {
    ISA(loop)(kind, REGULAR, source, destination, units);
  }
}

TARGET static void ISA(units)(shape kind, stores how, const char *source, char *destination,
                              size_t units) {
  switch (kind) {
  case R4W2:
    ISA(paths)(R4W2, how, source, destination, units);
    return;
  case R4W1:
    ISA(paths)(R4W1, how, source, destination, units);
    return;
  case R4W05:
    ISA(paths)(R4W05, how, source, destination, units);
    return;
  case R4W025:
    ISA(paths)(R4W025, how, source, destination, units);
    return;
  case R4W0125:
    ISA(paths)(R4W0125, how, source, destination, units);
    return;
  case R4W4:
    ISA(paths)(R4W4, how, source, destination, units);
    return;
  case R2W4:
    ISA(paths)(R2W4, how, source, destination, units);
    return;
  case R1W4:
    ISA(paths)(R1W4, how, source, destination, units);
    return;
  case R05W4:
    ISA(paths)(R05W4, how, source, destination, units);
    return;
  case R025W4:
    ISA(paths)(R025W4, how, source, destination, units);
    return;
  case R0125W4:
    ISA(paths)(R0125W4, how, source, destination, units);
    return;
  case R2RW4:
    ISA(loop)(R2RW4, ADDED, source, destination, units);
    return;
  case R1RW4:
    ISA(loop)(R1RW4, ADDED, source, destination, units);
    return;
  case R05RW4:
    ISA(loop)(R05RW4, ADDED, source, destination, units);
    return;
  case R025RW4:
    ISA(loop)(R025RW4, ADDED, source, destination, units);
    return;
  case R0125RW4:
    ISA(loop)(R0125RW4, ADDED, source, destination, units);
    return;
  case R4RW4:
    ISA(loop)(R4RW4, ADDED, source, destination, units);
    return;
  case SHAPES:
    return;
  }
}
