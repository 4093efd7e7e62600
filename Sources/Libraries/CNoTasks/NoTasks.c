// The functions of Swift's concurrency that ArgumentParser names in `AsyncParsableCommand`, which no program here uses.
//
// With these definitions nothing names Swift's concurrency. So the linker leaves it out of a program, and libdispatch,
// whose start every program would pay for. None is ever called: a program that would call one ends here.

void swift_task_alloc(void) { __builtin_trap(); }

void swift_task_dealloc(void) { __builtin_trap(); }

void swift_task_switch(void) { __builtin_trap(); }
