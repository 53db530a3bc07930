# Mutants of sim: its safeguards, removed one at a time (test/README). Sourced.

mutate atomics_not_told test_access_hooks 'CHANGES SWAPS ATOMICS' \
	's/(accesses_)write\(word, sizeof\(\*word\)\);/$1read(word, 0);/'
mutate replicas_not_told test_access_hooks __wrap_memcpy \
	's/(__wrap_memcpy\(void \*to, const void \*from, size_t bytes\)\n\{\n\taccesses_read\(from, bytes\);\n)\taccesses_write\(to, bytes\);\n/$1/'
mutate forbidden_memory_looked_at test_explorer look_whether_forbidden \
	's/(is looked at\\n"\);\n\t\t\t)abort\(\);/$1return;/'
mutate rest_of_forbidden_memory_forgotten test_explorer allow \
	's/\t\tforbid\(to, piece\.to\);\n//'
mutate what_lies_on_two_words_is_one test_access_hooks access_words \
	's/\bfrom < to && !accesses->many/from < to - 4 \&\& !accesses->many/'
mutate shared_change_taken_for_look test_explorer mode_of \
	's/\? EXPLORER_WRITE : EXPLORER_READ/? EXPLORER_READ : EXPLORER_READ/'
mutate code_tells_of_no_changes sim_explore=compare mode_of \
	's/\? EXPLORER_WRITE : EXPLORER_READ/? EXPLORER_READ : EXPLORER_READ/'
mutate many_words_told_apart test_explorer accesses_end \
	's/(if \(accesses->many\)\n\t\treturn )false;/$1true;/'
mutate summary_without_reads test_explorer summaries_meet \
	's/ \|\| \(a->seen\[i\] & b->changed\[i\]\) != 0//'
mutate sweep_goes_on_too_far test_explorer footprint_conflicts \
	's/x->space < y->space : x->to < y->to/x->space < y->space : x->to > y->to/'
mutate request_has_no_bytes test_cost_chains cost_send \
	's/flight->bytes \+= bytes;//'
mutate request_does_not_use_the_wire test_cost_chains cost_send \
	's/use\(requester, COST_OUT, now, bytes \* p->wire_byte, &wait\);//'
mutate doorbell_for_each_operation test_cost_chains cost_send \
	's/\(count > 1 \? p->pcie_read : 0\)/(count > 1 ? (uint64_t) count * p->pcie_read : 0)/'
mutate chain_is_two_round_trips test_cost_chains cost_send \
	's/sent \+= request \+ bytes \* p->wire_byte;/sent += request + bytes * p->wire_byte + (i > 0 ? 2 * p->wire_latency : 0);/'
mutate payload_always_inline test_cost_chains cost_send \
	's/write && ops\[i\]\.length > p->inline_bytes/write \&\& false/'
mutate client_work_left_out test_cost_chains cost_send \
	's/now \+ delay \+ p->post/now + p->post/'
mutate one_bucket_for_all test_cost_chains bucket_of \
	's/\(op->offset \/ 8\) % COST_BUCKETS/(op->offset \/ 8) % 1u/'
mutate bucket_has_no_queue test_cost_chains serve_in_bucket \
	's/later\(from, \*bucket\) \+ cost_parameters\.bucket/from + cost_parameters.bucket/'
mutate chip_locks_in_host_memory test_cost_chains cost_serve \
	's/op->region == FABRIC_LOCKS && placement->chip_locks/op->region == FABRIC_LOCKS \&\& false/'
mutate node_words_on_chip test_cost_chains cost_serve \
	's/op->region == FABRIC_LOCKS && placement->chip_locks/placement->chip_locks/'
mutate release_takes_the_bucket test_cost_chains cost_serve \
	's/= placement->release_by_write &&/= false \&\& placement->release_by_write \&\&/'
mutate read_without_pcie test_cost_chains cost_serve \
	's/ready \+= p->pcie_read \+ op->length \* p->pcie_byte;//'
mutate answer_does_not_use_the_wire test_cost_chains cost_answer \
	's/use\(responder, COST_OUT, now, duration, &flight->wait\);//'
mutate message_has_no_frame test_cost_chains message_op \
	's/\.length = bytes \+ cost_parameters\.call_header/.length = bytes/'
mutate processors_have_no_queue test_cost_chains cost_process \
	's/use\(host, COST_PROCESSORS, now, duration \/ p->processors, &wait\);//'
mutate call_touches_nothing test_cost_chains cost_process \
	's/p->call \+ touched \* p->check_byte/p->call + 0 * touched/'
mutate search_left_out test_cost_chains cost_execute \
	's/client->debt = read_bytes \* cost_parameters\.check_byte/client->debt = 0 * read_bytes * cost_parameters.check_byte/'
mutate shared_memory_not_watched test_explorer explorer_access \
	's/space >= EXPLORER_REGIONS \|\| space == EXPLORER_SHARED/space >= EXPLORER_REGIONS/'
mutate written_words_told_as_read sim_explore=compare queue.c:report_part \
	's/bool changes = memory\[from \/ 8\] != buffer\[from \/ 8\];/bool changes = false;/; s/if \(changes != \(memory\[next \/ 8\] != buffer\[next \/ 8\]\)\)/if (false)/'
mutate reads_behind_any_swap_are_nobodys sim_explore atomic_go_on \
	's/chain->vain = op->result != op->compare;/chain->vain = true;/'
mutate closed_descriptor_not_noticed test_sim_snapshot __wrap_close \
	's/(descriptor >= DESCRIPTORS) \|\| \(snapshot != NULL && .*?\)\)/$1)/'
mutate new_mapping_not_noticed test_sim_snapshot __wrap_mmap \
	's/(\tnote_change\(\);\n)(\treturn __real_mmap)/$2/'
mutate new_pages_stay test_sim_snapshot area_return \
	's/memset\(page, 0, PAGE_BYTES\);/(void) page;/'
mutate kept_memory_returns test_sim_snapshot area_of_line \
	's/ &&\n\t +!heap_begins_at\(\(const void \*\) from\)//'
mutate new_descriptor_not_noticed test_sim_snapshot snapshot_is_there \
	's/ && open_descriptors\(\) == snapshot->descriptors//'
mutate new_pages_not_looked_for test_sim_snapshot snapshot_return \
	's/faults == -1 \|\| faults != snapshot->faults/snapshot->faults == -1/'
mutate marks_not_told sim_explore=compare 'test/support/sim_work.c:mark_end test/support/sim_work.c:sim_mark' \
	's/\texplorer_access\(EXPLORER_HISTORY, [^;]*, EXPLORER_WRITE\);\n//'
mutate lock_always_combined test_techniques __wrap_access_execute_at \
	's/bool lock = baseline.read_apart &&/bool lock = false \&\&/'
mutate writes_always_combined test_techniques __wrap_access_execute_at \
	's/bool writes = baseline.writes_apart &&/bool writes = false \&\&/'
mutate read_behind_a_lost_swap test_techniques __wrap_access_execute_at \
	's/if \(lock && ops\[0\].result != ops\[0\].compare\)\n\t\t\tbreak;//'
mutate always_in_the_queue "test_techniques test_contention" __wrap_entry_acquire \
	's/if \(!baseline.flat_locks\)/if (true)/'
mutate back_off_is_always_adaptive test_techniques __wrap_back_off_wait \
	's/if \(baseline.back_off == BASELINE_BACK_OFF_ADAPTIVE\)/if (true)/'
mutate entries_always_written test_techniques __wrap_leaf_survey \
	's/if \(baseline.whole_leaves\)/if (false)/'
mutate whole_leaf_split_early test_techniques __wrap_leaf_worth_rewrite \
	's/baseline.whole_leaves && kept < room\)/baseline.whole_leaves \&\& kept < room \/ 2)/'
mutate updates_rewrite_their_leaf test_ycsb __wrap_insert_by_rewrite \
	's/if \(same_tid == LEAF_NO_SLOT \|\| !insert_overwrites\(in, same_tid\)\)/(void) insert_overwrites;\n\tif (true)/'
