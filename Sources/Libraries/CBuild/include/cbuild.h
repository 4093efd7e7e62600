/// The version of all programs.
#define STEPCTL_VERSION "0.1.0"

/// The commit that this was built from: 12 hexadecimal digits, and "+" if the files were not those of the commit;
/// null if unknown.
const char *cbuild_commit(void);

/// The processor that this was built for, as Debian names it.
const char *cbuild_architecture(void);
