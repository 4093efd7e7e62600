int ctoml_placeholder;
