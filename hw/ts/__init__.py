"""The task scheduler: SQs, the programs they run, and the choice of who runs next."""
