/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tests/support/svg_labels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the size of the font: a letter is so wide on average, rises and hangs so far. */
static const double WIDTH = 0.54, RISE = 0.75, HANG = 0.2, TOUCH = 1.5;

/* The text up to `end`, without elements; an entity is one letter. */
static size_t copy_text(const char *at, const char *end, char *text) {
  size_t used = 0;
  for (; at < end && used + 1 < SVG_LABEL_TEXT_MAX; at++) {
    if (*at == '<') {
      at = memchr(at, '>', (size_t)(end - at));
    } else if (*at == '&') {
      text[used++] = '&';
      at = memchr(at, ';', (size_t)(end - at));
    } else if ((unsigned char)*at >= ' ' && ((unsigned char)*at & 0xc0) != 0x80) {
      text[used++] = *at; /* of a letter of several bytes the first */
    }
    if (!at) {
      break;
    }
  }
  text[used] = '\0';
  return used;
}

static double attribute(const char *element, const char *name, double otherwise) {
  const char *end = strchr(element, '>'), *found = strstr(element, name);
  return found && end && found < end ? strtod(found + strlen(name), NULL) : otherwise;
}

static bool has(const char *element, const char *text) {
  const char *end = strchr(element, '>'), *found = strstr(element, text);
  return found && end && found < end;
}

/* The place of a label by the <g> it stands in. */
static void place(const char *group, size_t letters, svg_label *made) {
  const char *at = strstr(group, "translate(");
  char *rest = NULL;
  double x = at ? strtod(at + 10, &rest) : 0.0, y = rest && *rest ? strtod(rest + 1, NULL) : 0.0;
  double size = attribute(group, "font-size=\"", 12.0), width = WIDTH * size * (double)letters;
  double before = has(group, "\"middle\"") ? width / 2.0 : has(group, "\"end\"") ? width : 0.0;
  double turn = attribute(group, "rotate(", 0.0);
  if (turn < -45.0 || turn > 225.0) { /* it is read upwards */
    made->left = x - RISE * size;
    made->right = x + HANG * size;
    made->bottom = y + before;
    made->top = made->bottom - width;
    return;
  }
  made->left = x - before;
  made->right = made->left + width;
  made->top = y - RISE * size;
  made->bottom = y + HANG * size;
}

bool svg_labels_read(const char *svg, svg_labels *made) {
  const char *view = strstr(svg, "viewBox=\"0 0 "), *group = svg;
  memset(made, 0, sizeof *made);
  if (!view || sscanf(view, "viewBox=\"0 0 %lf %lf", &made->width, &made->height) != 2) {
    return false;
  }
  for (const char *at = svg; (at = strstr(at, "<text")); at++) {
    const char *end = strstr(at, "</text>");
    for (const char *next = group; (next = strstr(next + 1, "<g ")) && next < at;) {
      group = next;
    }
    if (!end || made->count == SVG_LABELS_MAX) {
      return false;
    }
    svg_label *label = &made->list[made->count];
    size_t letters = copy_text(at, end, label->text);
    if (strspn(label->text, " ") < letters) {
      place(group, letters, label);
      made->count++;
    }
  }
  return true;
}

static bool cover(const svg_label *a, const svg_label *b) {
  return fmin(a->right, b->right) - fmax(a->left, b->left) > TOUCH &&
         fmin(a->bottom, b->bottom) - fmax(a->top, b->top) > TOUCH;
}

static bool is_cut(const svg_labels *of, const svg_label *it) {
  return it->left < -TOUCH || it->top < -TOUCH || it->right > of->width + TOUCH ||
         it->bottom > of->height + TOUCH;
}

size_t svg_labels_collide(const svg_labels *of, char *what, size_t size) {
  size_t count = 0;
  for (size_t i = 0; i < of->count; i++) {
    const svg_label *it = &of->list[i];
    if (is_cut(of, it) && count++ == 0) {
      snprintf(what, size, "'%s' leaves the picture", it->text);
    }
    for (size_t other = 0; other < i; other++) {
      if (cover(it, &of->list[other]) && count++ == 0) {
        snprintf(what, size, "'%s' and '%s'", it->text, of->list[other].text);
      }
    }
  }
  return count;
}
