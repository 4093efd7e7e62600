// TOML 1.0 as a flat list of nodes: a C face on toml++, so that no C++ type is seen by Swift.
#ifndef CTOML_H
#define CTOML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  CTOML_TABLE,
  CTOML_ARRAY,
  CTOML_STRING,
  CTOML_INTEGER,
  CTOML_FLOAT,
  CTOML_BOOLEAN,
  CTOML_DATE_OR_TIME,
} ctoml_kind;

/// UTF-8, not terminated; it may contain U+0000.
typedef struct {
  const char *bytes;
  size_t count;
} ctoml_text;

/// Both from 1. A column is a code point, not a byte; a byte order mark at the beginning has none.
typedef struct {
  uint32_t line, column;
} ctoml_position;

typedef struct {
  ctoml_kind kind;
  /// Where the value begins, and the place right after it; of a table with a header, the header. 0 for the document.
  ctoml_position begin, end;
  /// Of a table: whether it is written in braces.
  bool is_inline;
  /// Empty in an array.
  ctoml_text key;
  /// The value, in the field of its kind; `boolean` is in `integer`.
  ctoml_text string;
  int64_t integer;
  double real;
  /// The nodes inside a table (by key) or an array (in its order).
  size_t first_child, child_count;
} ctoml_node;

typedef struct {
  ctoml_position place;
  ctoml_text description;
} ctoml_error;

typedef struct ctoml_document ctoml_document;

/// Parses; never NULL. The result owns all that the functions below lend, until `ctoml_free`.
ctoml_document *ctoml_parse(const char *bytes, size_t count);
void ctoml_free(ctoml_document *document);

/// NULL when the document was parsed.
const ctoml_error *ctoml_get_error(const ctoml_document *document);

/// Node 0 is the document's table; none after an error.
const ctoml_node *ctoml_get_nodes(const ctoml_document *document, size_t *count);

#ifdef __cplusplus
}
#endif

#endif
