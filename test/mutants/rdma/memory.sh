# Mutants of rdma/memory: its safeguards, removed one at a time (test/README). Sourced.

mutate reading_is_told_as_writing test_apply read_as_writer \
	's/ \| MEMORY_INTENT_READ//'
mutate intent_to_read_stays test_apply read_as_writer \
	's/(stripe_release\(stripe, odd\);\n)\t__atomic_store_n\(&channel->record->intent, 0, __ATOMIC_RELEASE\);/$1/'
mutate stripe_taken_by_idle_channel test_apply read_as_writer \
	's/\tif \(!run->active && !apply_become_active\(channel, run\)\)\n\t\treturn APPLY_FENCED;\n//'
mutate contended_read_tries_for_ever test_apply apply_contended_read \
	's/while \(run->overtaken < APPLY_READ_ATTEMPTS\)/while (true)/'
mutate stripe_that_stays_overtakes test_apply apply_contended_read \
	's/run->overtaken \+= word != run->awaited;/run->overtaken++;/'
mutate chain_goes_on_in_units_of_others test_tcp apply_may_go_on \
	's/\t\tif \(op->region == FABRIC_NODES && \(op->opcode.*?return false;\n//s'
mutate only_next_operation_looked_at test_tcp apply_may_go_on \
	's/for \(int i = run->next; i < run->count; i\+\+\)/for (int i = run->next; i <= run->next; i++)/'
mutate units_of_all_tenants test_security apply_may_touch \
	's/return mark == channel->mark \|\|/return mark != 0 ||/'
mutate redo_slots_of_all test_security apply_may_touch \
	's/offset \/ FABRIC_REDO_BYTES == channel->channel/offset < FABRIC_UNIT_BYTES/'
mutate tenants_units_of_all two_tenants apply_may_touch \
	's/return mark == channel->mark \|\|/return mark != 0 ||/'
mutate killed_channel_goes_on conformance apply_become_active \
	's/run->active = apply_is_live\(channel, __ATOMIC_SEQ_CST\);/run->active = true;/'
mutate record_of_another_taken test_recovery apply_become_active \
	's/if \(!__atomic_compare_exchange_n\(&channel->record->active.*?return false;/__atomic_store_n(\&channel->record->active, idle | 1, __ATOMIC_SEQ_CST);/s'
mutate write_not_staged test_tcp apply_write \
	's/if \(channel->stage != NULL\)/if (false)/'
mutate cut_memory_ends_process test_server guard_add \
	's/if \(!install\(\)\)\n\t\treturn false;/(void) install;\n\tif (bytes > 0)\n\t\treturn false;/'
mutate size_before_file test_resize resize_region \
	's/(FabricStatus status = lengthen\(memory, segment_bytes\(region_bytes, pages\)\);)/size_store(&memory->header->region_bytes, region_bytes);\n\t$1/'
mutate old_boot_believed test_server is_of_this_boot \
	's/ && memcmp\(boot_id, header->boot_id, sizeof\(boot_id\)\) == 0//'
mutate strange_segment_replaced test_server memory_kind_of \
	's/if \(page\.bytes\[i\] != 0\)\s+return MEMORY_KIND_STRANGE;/if (page.bytes[i] != 0)\n\t\t\treturn MEMORY_KIND_SEGMENT;/s'
mutate longer_file_refused test_resize memory_map \
	's/header\.segment_bytes > \(uint64_t\) file\.st_size/header.segment_bytes != (uint64_t) file.st_size/'
mutate one_lock_table_for_all test_security memory_tenant_locks \
	's/return memory->locks \+ \(size_t\) tenant \* MEMORY_LOCK_WORDS;/return memory->locks + 0 * tenant;/'
mutate all_locks_freed conformance memory_lock_is_stale \
	's/return word >> 48 == instance && .*?;/return word != 0 + 0 * instance + 0 * incarnation;/'
mutate mount_of_another_device test_pages mount_policy \
	's/ \|\|\s+numbers\[1\] != minor\(device\)//'
mutate advice_is_for_all test_pages tmpfs_kind \
	's/"advise"\) == 0 \? PAGES_TMPFS_ADVISE/"advise") == 0 ? PAGES_TMPFS_HUGE/'
mutate within_size_has_small_pages test_pages tmpfs_kind \
	's/ \|\| strcmp\(policy, "within_size"\) == 0//'
mutate denied_by_the_machine_all_the_same test_pages tmpfs_kind \
	's/if \(machine_policy_is\("\[deny\]"\)\)/if (false)/'
mutate forced_by_the_machine_in_vain test_pages tmpfs_kind \
	's/if \(machine_policy_is\("\[force\]"\)\)/if (false)/'
mutate tmpfs_not_known test_pages pages.c:pages_of \
	's/file_system\.f_type == TMPFS_TYPE/file_system.f_type == TMPFS_TYPE + 1/'
mutate hugetlbfs_not_known test_pages pages.c:pages_of \
	's/file_system\.f_type == HUGETLBFS_TYPE/file_system.f_type == HUGETLBFS_TYPE + 1/'
mutate pages_of_hugetlbfs_are_small test_pages pages.c:pages_of \
	's/pages\.bytes = \(uint64_t\) file_system\.f_bsize;//'
mutate advised_pages_are_small test_pages pages_are_huge \
	's/pages->kind >= PAGES_TMPFS_HUGE/pages->kind > PAGES_TMPFS_HUGE/'
mutate first_page_not_populated test_pages pages_populate \
	's/\(uintptr_t\) start \/ MEMORY_PAGE_BYTES \* MEMORY_PAGE_BYTES/((uintptr_t) start + MEMORY_PAGE_BYTES - 1) \/ MEMORY_PAGE_BYTES * MEMORY_PAGE_BYTES/'
mutate command_ends_at_first_parenthesis test_process process_start_time \
	's/strrchr\(text/strchr(text/'
mutate process_is_its_number test_process process_open \
	's/process_start_time\(pid\) != start_time/false/'
mutate process_is_never_gone test_process process_is_gone \
	's/\(polled\.revents & POLLIN\) != 0/polled.revents == 0/'
mutate gone_process_cannot_be_killed test_process process_kill \
	's/ \|\| errno == ESRCH//'
mutate kept_by_a_like_name test_msd parse_name \
	's/ \|\|\s+!is_number\(end\)//'
mutate kept_at_a_like_time test_msd parse_name \
	's/strspn\(why \+ letters, "0123456789TZ"\) < \(size_t\) \(end - why\) - letters/false/'
mutate links_are_kept test_msd set_aside_list_all \
	's/AT_SYMLINK_NOFOLLOW/0/'
mutate files_of_others_are_kept test_msd visit_own \
	's/if \(file->owner != \(uint32_t\) geteuid\(\)\)\n\t\treturn;//'
mutate kept_without_bound test_snapshot set_aside_file \
	's/>= SET_ASIDE_MOST\)/> 1000 * SET_ASIDE_MOST)/'
mutate text_removed_as_kept test_msd remove_open \
	's/if \(!holds_kind\(descriptor, kind\)\)/if (holds_kind(descriptor, kind) \&\& false)/'
mutate served_memory_removed test_msd remove_open \
	's/if \(is_in_use\(descriptor\)\)/if (is_in_use(descriptor) \&\& false)/'
mutate any_name_removed test_msd set_aside_remove \
	's/if \(!wanted\.found\)/if (!wanted.found \&\& kept[0] == 0)/'
mutate strange_snapshot_replaced test_snapshot snapshot_may_be \
	's/\(magic == SNAPSHOT_MAGIC \|\| magic == 0\)/true/'
mutate locks_not_saved test_daemon table_area \
	's/tenant_is_known\(header, number\) \? MEMORY_LOCK_BYTES : 0/0/'
mutate free_units_saved test_snapshot unit_is_in_use \
	's/return unit >= first && memory->units\[unit\] != 0 && /return unit >= first \&\& /'
mutate block_anywhere test_snapshot snapshot.c:block_sum \
	's/const uint64_t place\[\] = \{header->key, block->offset, block->bytes\};/const uint64_t place[] = {0, block->offset, block->bytes};/' \
	snapshot_load \
	's/if \(reader\.sums != header->sums\)/if (false)/'
mutate room_not_looked_for test_snapshot check_room \
	's/if \(free_bytes >= needed\)/if (true)/'
mutate pipe_taken_for_snapshot test_snapshot writer_open \
	's/if \(!snapshot_may_be\(writer->descriptor\)\)/if (false)/'
mutate half_a_file_has_the_name test_snapshot snapshot_clean \
	's/!name_with\(path, SNAPSHOT_NEW, name\)/!name_with(path, "", name)/' \
	snapshot_save \
	's/rename\(name, path\) != 0/false/'
mutate failed_save_stays test_snapshot snapshot_save \
	's/if \(status != FABRIC_OK && status != FABRIC_EXISTS\)\s+unlink\(name\);//s'
mutate header_believed_unseen test_snapshot read_header \
	's/if \(header->sum != header_sum\(header\)\)/if (false)/'
mutate any_length test_snapshot read_header \
	's/if \(header->file_bytes != \(uint64_t\) status\.st_size\)/if (false)/'
mutate any_version test_snapshot read_header \
	's/if \(header->version != SNAPSHOT_VERSION \|\| header->header_bytes != sizeof\(\*header\)\)/if (false)/'
mutate block_believed_unseen test_snapshot read_block \
	's/if \(block_sum\(&reader->file->header, &block, place\) != block\.sum\)/if (false)/'
mutate header_written_first test_snapshot snapshot_load \
	's/memory->header->tenants, header->memory\.tenants, sizeof\(header->memory\.tenants\)\);/memory->header->tenants, header->memory.tenants, sizeof(header->memory.tenants));\n\t(void) name_segment(file, memory);/'
mutate zeroes_without_pages test_snapshot snapshot_load \
	's/if \(take_pages\(memory\) != FABRIC_OK\)/if (false)/' \
	take_pages \
	's/static FabricStatus\ntake_pages/static FabricStatus __attribute__((unused))\ntake_pages/'
mutate read_without_second_look conformance stripe_try_read \
	's/return __atomic_load_n\(stripe, __ATOMIC_RELAXED\) == before;/return true;/'
mutate write_without_stripe conformance stripe_try_take \
	's/return __atomic_compare_exchange_n\(stripe, &before, \*odd,.*?;/return true;/s'
