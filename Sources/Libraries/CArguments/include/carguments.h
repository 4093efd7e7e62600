/// An argument that the program was started with, from 0, the program's name, on; null behind the last.
const char *carguments_at(int index);
