/// The commit that this was built from, in hexadecimal; null if unknown.
const char *cbuild_commit(void);
