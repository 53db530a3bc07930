# Mutants of tree/shared: its safeguards, removed one at a time (test/README). Sourced.

mutate block_pool_reset_in_part test_blocks blocks_pool_reset \
	's/\ttable->pool_full = 0;\n//'
mutate block_pool_reset_keeps_its_list test_blocks blocks_pool_reset \
	's/\ttable->pool_free = 0;\n//'
mutate block_rests_fill_the_pool test_blocks pool_take \
	's/rest \? table->pool_blocks \/ 2 : table->pool_blocks/rest ? table->pool_blocks : table->pool_blocks/'
mutate block_pool_one_too_many test_blocks pool_take \
	's/table->pool_full >= room/table->pool_full > room/'
mutate block_places_used_once test_blocks pool_take \
	's/else if \(table->pool_free != 0\)/else if (false)/'
mutate block_pool_never_less_full test_blocks pool_give \
	's/\ttable->pool_full--;\n//'
mutate block_of_no_bytes_has_a_place test_blocks blocks_put \
	's/bytes != 0 \? pool_take\(table, rest\) : 0/pool_take(table, rest)/'
mutate block_replaces_its_list test_blocks blocks_put \
	's/pool_block\(table, number\)->next = at->blocks\[length\];/pool_block(table, number)->next = 0;/'
mutate block_lists_of_one_word test_blocks lengths_find \
	's/i\+\+, skip = ~0ull\)/i++)/'
mutate block_lists_but_the_last_word test_blocks lengths_find \
	's/i < STATE_BLOCK_LENGTHS \/ 64; i/i + 1 < STATE_BLOCK_LENGTHS \/ 64; i/'
mutate block_one_too_short test_blocks blocks_take \
	's/length = lengths_find\(at, wanted\);/length = lengths_find(at, wanted - 1);/'
mutate block_rest_lost test_blocks blocks_take \
	's/\tblocks_put\(table, at, \*offset \+ bytes, .*?;\n//'
mutate block_rest_is_its_beginning test_blocks blocks_take \
	's/blocks_put\(table, at, \*offset \+ bytes, /blocks_put(table, at, *offset, /'
mutate block_rest_is_whole test_blocks blocks_take \
	's/\(length - wanted\) \* OVERFLOW_ALIGN, true\)/(length - wanted) * OVERFLOW_ALIGN, false)/'
mutate block_place_lost_when_taken test_blocks blocks_take \
	's/(at->lengths\[length \/ 64\] &= ~\(1ull << length % 64\);\n)\tpool_give\(table, number\);\n(\tblocks_put)/$1$2/'
mutate block_list_stays_marked test_blocks blocks_take \
	's/\tif \(at->blocks\[length\] == 0\)\n\t\tat->lengths\[length \/ 64\] &= .*?;\n//'
mutate block_list_ends_with_its_first test_blocks blocks_take \
	's/\tif \(at->blocks\[length\] == 0\)\n\t(\tat->lengths)/$1/'
mutate block_forgotten_keeps_its_place test_blocks blocks_forget \
	's/(->next;\n)\t\t\tpool_give\(table, number\);\n/$1/'
mutate block_first_of_a_list_forgotten test_blocks blocks_forget \
	's/while \(at->blocks\[length\] != 0\)/if (at->blocks[length] != 0)/'
mutate counted_twice test_tree tree_count_flush \
	's/\tmemset\(&tree->pending, 0, sizeof\(tree->pending\)\);\n//'
mutate removals_not_counted test_estimate tree_count_flush \
	's/ - \(int64_t\) tree->pending\.dead_removals//'
mutate splits_not_counted test_estimate tree_count_flush \
	's/\(int64_t\) tree->pending\.leaf_splits/0/'
mutate root_splits_not_counted test_estimate tree_count_flush \
	's/tree->pending\.inner_splits \+ tree->pending\.root_splits/tree->pending.inner_splits/'
mutate reset_counts_on test_tree tree_counters \
	's/ - reset \+ mine/ + mine/'
mutate own_counts_not_seen test_tree tree_counters \
	's/ \+ mine\[i\];/;/'
mutate reset_without_its_time test_tree tree_counters_reset \
	's/__atomic_store_n\(&state->counters_reset, now, /__atomic_store_n(\&state->counters_reset, 0, /'
mutate unsettled_for_ever test_reclaim state_node_fenced \
	's/\t\t__atomic_fetch_and\(&state->unsettled, [^;]*;\n//'
mutate settled_by_another_node test_reclaim state_node_fenced \
	's/\(&state->unsettled, ~\(1u << node\), /(\&state->unsettled, 0, /'
mutate leaked_lock_is_forgotten test_replicas state_node_fenced \
	's/\t\tif \(__atomic_exchange_n\(&state->locks_leaked, 0, __ATOMIC_ACQ_REL\) != 0\)\n\t\t\tstate_replicas_note_doubt\(state\);\n//'
mutate neighbors_are_strangers test_cache frame_set \
	's/\(number - neighbor\) << table->number_shift/address/'
mutate sets_end_nowhere test_cache frame_set \
	's/set < table->sets \? set : set - table->sets/set/'
mutate frame_known_by_its_tag_alone test_cache frame_find \
	's/\(word_load\(&head->tree\) == key->tree && word_load\(&head->address\) == key->address\)/true/'
mutate frame_of_a_dead_filler_chosen test_cache frame_victim \
	's/\(sequence & 1\) == 0 && //'
mutate frames_of_the_dead_stay test_cache cache_shared_reset \
	's/\tframes_reset\(&table->frames\);\n//'
mutate merge_empties_the_cache test_merge cache_find_child \
	's/epoch < tree->first_epoch/epoch != tree->epoch/'
mutate frame_of_another_life_believed test_cache cache_find_child \
	's/ \|\| epoch < tree->first_epoch//'
mutate copied_link_to_merged_node_believed test_cache image_is_untouched \
	's/return node_is_untouched\(table, tree, pointer_address\(image\[HEADER_RIGHT\]\), epoch\);/return true;/'
mutate mark_of_another_tree_is_less test_cache cache_touched \
	's/while \(last < tree->epoch &&/while (last != tree->epoch \&\&/'
mutate frame_of_merged_node_believed test_cache cache_find_child \
	's/ \|\|\s+!node_is_untouched\(table, tree, key\.address, epoch\)//'
mutate pointer_to_merged_node_believed "test_cache test_merge" cache_find_child \
	's/\? !node_is_untouched\(table, tree, pointer_address\(choice->child\), epoch\)/? false/'
mutate copied_pointer_to_merged_node_believed "test_cache test_merge" cache_find_child \
	's/\t\t            : !image_is_untouched\(table, tree, copy, epoch\)\)/: false)/' \
	image_is_untouched \
	's/static bool\nimage_is_untouched/static inline bool\nimage_is_untouched/'
mutate frame_believed_unseen test_cache cache_find_child \
	's/!sequence_end_read\(&frame->head\.sequence, sequence\)/false/'
mutate unfinished_frame_believed test_cache cache_find_child \
	's/\(sequence & 1\) != 0 \|\| //; s/!sequence_end_read\(&frame->head\.sequence, sequence\)/sequence_begin_read(\&frame->head.sequence) != sequence/'
mutate frame_of_before_stays_old test_cache frame_is_as_new \
	's/generation == image\[HEADER_GENERATION\] && word_load\(&frame->head\.epoch\) >= tree->epoch\)/generation == image[HEADER_GENERATION])/'
mutate older_image_wins test_cache cache_refresh \
	's/if \(frame_is_as_new\(frame, tree, image\) \|\| /if (/'
mutate parents_evicted test_cache frame_evict \
	's/if \(__atomic_load_n\(&frame->children, __ATOMIC_SEQ_CST\) != 0\)/if (false)/' \
	inner_cache.c:frame_worth \
	's/if \(__atomic_load_n\(&frame->children, __ATOMIC_RELAXED\) != 0\)/if (false)/'
mutate children_without_parent test_cache cache_put \
	's/if \(attached == CACHE_NO_FRAME\)\s+return;//s'
mutate given_up_comes_back test_replicas state_replicas_set \
	's/\(void\) replicas_change\(state, TREE_REPLICAS_BOTH, replicas\);/__atomic_store_n(\&state->replicas, replicas, __ATOMIC_RELEASE);/'
mutate spin_word_not_given_back test_lock spin_unlock \
	's/__atomic_store_n\(spin, 0, __ATOMIC_RELEASE\);//'
mutate freed_units_kept_by_the_dropped test_freed part_forget \
	's/\tunits_forget\(table, part\);\n//'
mutate part_of_a_released_state_lost test_states state_release \
	's/\t\t\tpart_give\(table, state->at\[i\]\);\n//'
mutate unsettled_state_evicted test_reclaim state_is_evictable \
	's/ &&\s+__atomic_load_n\(&state->unsettled, __ATOMIC_ACQUIRE\) == 0//'
mutate open_state_evicted test_states state_is_evictable \
	's/state->tree != 0 && state->references == 0 &&/state->tree != 0 \&\&/' \
	state_release \
	's/\tassert\(state->references == 0\);\n//'
mutate not_looked_behind_eviction test_reclaim state_make \
	's/(\tmade->tree = tree;\n)/$1\tmade->past_over = 1;\n/'
mutate dropped_state_stays test_states state_put \
	's/if \(state->references == 0 && state->dropped\)/if (false)/'
mutate dropped_state_of_an_open_handle test_states state_drop \
	's/if \(state != NULL && state->references == 0\)\n\t\tstate_release/if (state != NULL)\n\t\tstate_release/' \
	state_release \
	's/\tassert\(state->references == 0\);\n//'
mutate one_handover_more test_lock 'tree_techniques tree_owner_techniques' \
	's/\.handovers = HANDOVER_MAX,/.handovers = HANDOVER_MAX + 1,/'
mutate choice_of_techniques_ignored test_techniques shared_techniques \
	's/options->techniques != NULL \? options->techniques :/options->techniques == NULL ? NULL :/'
mutate freed_units_of_all_trees test_freed find_locked \
	's/if \(unit->part == part && unit->offset == offset\)/if (unit->offset == offset)/' \
	units.c:bucket \
	's/0x9e3779b97f4a7c15ull \+ part\)/0x9e3779b97f4a7c15ull + 0 * part)/'
mutate freed_count_stays test_freed unit_set \
	's/at->freed_count\[kind\] \+= \(uint64_t\) count - before;/at->freed_count[kind] += count > before;/'
mutate cached_is_not_forgotten 'test_reader sim_explore=reader-death' state_table.c:forget_cached \
	's/\t__atomic_store_n\(&state->first_epoch, epoch, __ATOMIC_RELAXED\);\n//'
mutate halves_cached_is_not_forgotten test_replicas state_replicas_read \
	's/\t\tforget_cached\(table, state\);\n//'
