# Safeguards of the explorer of all orders, and of the snapshots that its runs begin with. Sourced by test/mutations.

mutate shared_change_taken_for_look test_explorer mode_of \
	's/\? EXPLORER_WRITE : EXPLORER_READ/? EXPLORER_READ : EXPLORER_READ/'
mutate shared_memory_not_watched test_explorer explorer_access \
	's/space >= EXPLORER_REGIONS \|\| space == EXPLORER_SHARED/space >= EXPLORER_REGIONS/'
mutate many_words_told_apart test_explorer accesses_end \
	's/(if \(accesses->many\)\n\t\treturn )false;/$1true;/'
mutate forbidden_memory_looked_at test_explorer look_whether_forbidden \
	's/(is looked at\\n"\);\n\t\t\t)abort\(\);/$1return;/'
mutate rest_of_forbidden_memory_forgotten test_explorer allow \
	's/\t\tforbid\(to, piece\.to\);\n//'
mutate summary_without_reads test_explorer summaries_meet \
	's/ \|\| \(a->seen\[i\] & b->changed\[i\]\) != 0//'
mutate sweep_goes_on_too_far test_explorer footprint_conflicts \
	's/x->space < y->space : x->to < y->to/x->space < y->space : x->to > y->to/'
mutate new_pages_stay test_sim_snapshot area_return \
	's/memset\(page, 0, PAGE_BYTES\);/(void) page;/'
mutate new_pages_not_looked_for test_sim_snapshot snapshot_return \
	's/faults == -1 \|\| faults != snapshot->faults/snapshot->faults == -1/'
mutate closed_descriptor_not_noticed test_sim_snapshot __wrap_close \
	's/(descriptor >= DESCRIPTORS) \|\| \(snapshot != NULL && .*?\)\)/$1)/'
mutate new_descriptor_not_noticed test_sim_snapshot snapshot_is_there \
	's/ && open_descriptors\(\) == snapshot->descriptors//'
mutate new_mapping_not_noticed test_sim_snapshot __wrap_mmap \
	's/(\tnote_change\(\);\n)(\treturn __real_mmap)/$2/'
mutate kept_memory_returns test_sim_snapshot area_of_line \
	's/ &&\n\t +!heap_begins_at\(\(const void \*\) from\)//'
mutate atomics_not_told test_access_hooks 'CHANGES SWAPS ATOMICS' \
	's/(accesses_)write\(word, sizeof\(\*word\)\);/$1read(word, 0);/'
mutate replicas_not_told test_access_hooks __wrap_memcpy \
	's/(__wrap_memcpy\(void \*to, const void \*from, size_t bytes\)\n\{\n\taccesses_read\(from, bytes\);\n)\taccesses_write\(to, bytes\);\n/$1/'
mutate what_lies_on_two_words_is_one test_access_hooks access_words \
	's/\bfrom < to && !accesses->many/from < to - 4 \&\& !accesses->many/'
