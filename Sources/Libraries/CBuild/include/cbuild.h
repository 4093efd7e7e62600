/// The commit that this was built from, in hexadecimal; null where that is not known.
const char *cbuild_commit(void);
