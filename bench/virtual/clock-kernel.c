
/*
 * Lasthop: the end of the vDSO's page shows the clocks to programs, which then need not call the
 * kernel to read them (clock-vdso.c). Four words: nanoseconds now, what to add for CLOCK_MONOTONIC
 * and for CLOCK_REALTIME, and 1 once all that holds. Nobody sets or disciplines the clocks there.
 */
extern struct page *um_vdso;
extern char vdso_start[], vdso_end[];
static u64 *shown_clock;

/* To be called whenever virtual time has changed: as coarse as the clock source. */
static void show_clock(void)
{
	if (shown_clock)
		WRITE_ONCE(shown_clock[0], time_travel_time / TIMER_MULTIPLIER * TIMER_MULTIPLIER);
}

/* Before the first program starts. */
static int __init begin_to_show_clock(void)
{
	u64 *words = page_address(um_vdso) + PAGE_SIZE - 4 * sizeof(u64);
	unsigned long flags;

	BUG_ON(vdso_end - vdso_start > PAGE_SIZE - 4 * sizeof(u64));
	memset(words, 0, 4 * sizeof(u64));
	if (time_travel_mode == TT_MODE_OFF)
		return 0;
	/* While interrupts are off, reading a clock takes no time. */
	local_irq_save(flags);
	shown_clock = words;
	show_clock();
	words[1] = ktime_get_ns() - words[0];
	words[2] = ktime_get_real_ns() - words[0];
	words[3] = 1;
	local_irq_restore(flags);
	return 0;
}
late_initcall_sync(begin_to_show_clock);
