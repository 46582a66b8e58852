
/*
 * Lasthop: reads the clocks off the end of this page (clock-kernel.c). No need to read twice: while
 * a program runs, time stands still.
 */
int __vdso_clock_gettime(clockid_t clock, struct __kernel_timespec *ts)
{
	const volatile unsigned long *words;
	unsigned long here, ns;

	/* Nobody has relocated the address of a symbol. */
	asm("lea (%%rip), %0" : "=r" (here));
	words = (const volatile unsigned long *)((here | 4095) + 1) - 4;
	if (!words[3] || (clock != CLOCK_MONOTONIC && clock != CLOCK_REALTIME))
		return call_clock_gettime(clock, ts);
	ns = words[0] + words[clock == CLOCK_MONOTONIC ? 1 : 2];
	ts->tv_sec = ns / 1000000000;
	ts->tv_nsec = ns % 1000000000;
	return 0;
}

/* There is one processor. */
long __vdso_getcpu(unsigned *cpu, unsigned *node, void *unused)
{
	if (cpu)
		*cpu = 0;
	if (node)
		*node = 0;
	return 0;
}
