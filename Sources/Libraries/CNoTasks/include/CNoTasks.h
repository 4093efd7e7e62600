// Nothing is declared: see NoTasks.c.
