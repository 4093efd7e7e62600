#include "ctoml.h"

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#define TOML_MAX_NESTED_VALUES 8
#include <toml++/toml.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace {

// toml++ frees what it parsed by recursion and limits the depth of values only, so that a key of 30,000 dots would
// exhaust the stack. A line of this length holds at most 512 levels.
constexpr size_t maximum_line = 1024;

ctoml_text text(std::string_view view) { return {view.data(), view.size()}; }

ctoml_node describe(const toml::node &value, std::string_view key) {
  ctoml_node node = {};
  node.line = value.source().begin.line;
  node.key = text(key);
  switch (value.type()) {
  case toml::node_type::table: node.kind = CTOML_TABLE; break;
  case toml::node_type::array: node.kind = CTOML_ARRAY; break;
  case toml::node_type::string:
    node.kind = CTOML_STRING;
    node.string = text(value.as_string()->get());
    break;
  case toml::node_type::integer:
    node.kind = CTOML_INTEGER;
    node.integer = value.as_integer()->get();
    break;
  case toml::node_type::floating_point:
    node.kind = CTOML_FLOAT;
    node.real = value.as_floating_point()->get();
    break;
  case toml::node_type::boolean:
    node.kind = CTOML_BOOLEAN;
    node.integer = value.as_boolean()->get();
    break;
  default: node.kind = CTOML_DATE_OR_TIME; break;
  }
  return node;
}

} // namespace

struct ctoml_document {
  toml::parse_result result;
  ctoml_error error = {};
  std::vector<ctoml_node> nodes;
};

extern "C" ctoml_document *ctoml_parse(const char *bytes, size_t count) {
  auto *document = new ctoml_document;

  std::string_view rest(bytes, count);
  for (uint32_t line = 1; !rest.empty(); line++) {
    const size_t length = std::min(rest.find('\n'), rest.size());
    if (length > maximum_line) {
      document->error = {line, maximum_line + 1, text("the line is longer than 1024 bytes")};
      return document;
    }
    rest.remove_prefix(std::min(length + 1, rest.size()));
  }

  document->result = toml::parse(std::string_view(bytes, count));
  if (!document->result) {
    const toml::parse_error &error = document->result.error();
    const toml::source_position place = error.source().begin;
    document->error = {place.line, place.column, text(error.description())};
    return document;
  }

  // Breadth first: the children of a node come to stand side by side.
  std::vector<ctoml_node> &nodes = document->nodes;
  std::vector<const toml::node *> values = {&document->result.table()};
  nodes.push_back(describe(*values[0], {}));
  nodes[0].line = 0;
  for (size_t index = 0; index < nodes.size(); index++) {
    const toml::node &value = *values[index];
    nodes[index].first_child = nodes.size();
    if (const toml::table *table = value.as_table()) {
      for (const auto &[key, child] : *table) {
        nodes.push_back(describe(child, key.str()));
        values.push_back(&child);
      }
    } else if (const toml::array *array = value.as_array()) {
      for (const toml::node &child : *array) {
        nodes.push_back(describe(child, {}));
        values.push_back(&child);
      }
    }
    nodes[index].child_count = nodes.size() - nodes[index].first_child;
  }
  return document;
}

extern "C" void ctoml_free(ctoml_document *document) { delete document; }

extern "C" const ctoml_error *ctoml_get_error(const ctoml_document *document) {
  return document->nodes.empty() ? &document->error : nullptr;
}

extern "C" const ctoml_node *ctoml_get_nodes(const ctoml_document *document, size_t *count) {
  *count = document->nodes.size();
  return document->nodes.data();
}
