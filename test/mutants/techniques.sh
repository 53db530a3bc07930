# Techniques that can be left out: that they are. Sourced by test/mutations.

mutate lock_always_combined test_techniques word_win \
	's/client->techniques.combine_lock &&/true \&\&/'
mutate unlock_always_combined test_techniques lock_write_and_release \
	's/!techniques->combine_unlock \|\| //'
mutate writes_always_combined test_techniques writes_together \
	's/if \(tree->client->techniques.combine_unlock\)\n\t\treturn count;/if (count > 0)\n\t\treturn count;/'
mutate entries_always_written test_techniques insert_locked \
	's/tree->client->techniques.entry_writes\)/true)/'
mutate whole_leaf_split_early test_techniques insert_full \
	's/\(whole && cells->leaf.count <= g->leaf_cells\)/(whole \&\& cells->leaf.count <= g->leaf_cells \/ 2)/'
mutate nothing_excludes test_techniques lock_words_are_needed \
	's/if \(!techniques->exclusive \|\| !techniques->hierarchy \|\|/if (!techniques->exclusive ||/'
mutate exclusive_is_always_free test_techniques lock_is_free \
	's/\*free = !entry_is_owned\(.*?\);/*free = true;/'
mutate swaps_repeated_at_once test_contention back_off_wait \
	's/if \(!client->techniques.back_off\)/if (true)/'
mutate limit_does_not_rise "test_techniques test_contention" back_off_count \
	's/own->doublings\+\+;/(void) own;/'
mutate limit_does_not_fall test_techniques back_off_count \
	's/own->doublings--;/(void) own;/'
mutate adaptive_is_awake_for_ever test_techniques back_off_wait \
	's/attempt > \(adaptive \? ADAPTIVE_SPINS : BACK_OFF_SPINS\)/!adaptive \&\& attempt > BACK_OFF_SPINS/'
mutate long_waits_are_awake test_techniques wait_adaptive \
	's/if \(wait < MICROSECONDS_PER_MS\)/if (wait > 0)/'
mutate credits_not_waited_for test_techniques credits_take \
	's/if \(taken \+ wanted <= credits \|\|/if (true ||/'
mutate credits_lost test_techniques credits_return \
	's/__atomic_fetch_sub\(&group_of\(client\)->taken, taken, __ATOMIC_RELAXED\);//'

# Speculative lookups.
mutate dead_cell_found test_speculate cell_fits \
	's/cell_state\(cell\[0\]\) == CELL_LIVE && //'
mutate guess_where_not_connected test_speculate speculate.c:guess \
	's/access_endpoint\(tree->client, [^|]*== NULL \|\|/false ||/'
mutate guess_of_a_line_that_tears test_speculate speculate.c:guess \
	's/ \|\|\s+leaf_needs_sum\(g, place\)\)/)/'
mutate key_not_looked_at test_speculate cell_fits \
	's/&& cell_same_key\(g, cell, wanted\)/\&\& wanted != NULL/'
mutate guess_of_another_epoch test_speculate key_hash \
	's/bytes\[1\] = epoch;/bytes[1] = epoch * 0;/'
mutate cell_of_the_root_remembered test_speculate remember \
	's/\s+pointer_address\(scan->pointer\) == tree->root \|\|//'
mutate hint_of_another_key test_speculate hint_load \
	's/return \(check \^ place\) == hash \? place : 0;/return (check ^ hash) != 0 ? place : 0;/'
