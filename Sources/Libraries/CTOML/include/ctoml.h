// TOML 1.0 as a flat list of nodes: a C interface to toml++ that hides all C++ types from Swift.
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

/// Both count from 1. Columns count code points, not bytes; a byte order mark at the beginning is not counted.
typedef struct {
  uint32_t line, column;
} ctoml_position;

typedef struct {
  ctoml_kind kind;
  /// The first position of the value, and the position after its end; for a table with a header, those of the header. 0
  /// for the document.
  ctoml_position begin, end;
  /// For a table: whether it is inline, in braces.
  bool is_inline;
  /// The key; empty in an array.
  ctoml_text key;
  /// The value, in the field for its kind. A `boolean` is in `integer`.
  ctoml_text string;
  int64_t integer;
  double real;
  /// The nodes inside a table (sorted by key) or an array (in order).
  size_t first_child, child_count;
} ctoml_node;

typedef struct {
  ctoml_position place;
  ctoml_text description;
} ctoml_error;

typedef struct ctoml_document ctoml_document;

/// Parses a document; never returns NULL. The result owns everything that the functions below return, until
/// `ctoml_free`.
ctoml_document *ctoml_parse(const char *bytes, size_t count);
void ctoml_free(ctoml_document *document);

/// NULL if the document was parsed.
const ctoml_error *ctoml_get_error(const ctoml_document *document);

/// Node 0 is the document's table. There are no nodes after an error.
const ctoml_node *ctoml_get_nodes(const ctoml_document *document, size_t *count);

#ifdef __cplusplus
}
#endif

#endif
