# Safeguards of snapshots. Sourced by test/mutations.

mutate snapshot_stays test_snapshot saved_load \
	's/if \(\*loaded\)\s+status = consume\(server, why\);//s'
mutate snapshot_of_kept_memory_stays test_snapshot saved_forget \
	's/if \(same\)\s+status = consume\(server, detail\);/(void) consume;/s'
mutate any_snapshot_is_of_the_memory test_snapshot is_of_memory \
	's/return saved->run == memory->run &&\s+/return /s'
mutate strange_snapshot_replaced test_snapshot snapshot_may_be \
	's/\(magic == SNAPSHOT_MAGIC \|\| magic == 0\)/true/'
mutate kept_without_bound test_snapshot set_aside_file \
	's/>= SET_ASIDE_MOST\)/> 1000 * SET_ASIDE_MOST)/'
mutate text_removed_as_kept test_msd remove_open \
	's/if \(!holds_kind\(descriptor, kind\)\)/if (holds_kind(descriptor, kind) \&\& false)/'
mutate any_name_removed test_msd set_aside_remove \
	's/if \(!wanted\.found\)/if (!wanted.found \&\& kept[0] == 0)/'
mutate served_memory_removed test_msd remove_open \
	's/if \(is_in_use\(descriptor\)\)/if (is_in_use(descriptor) \&\& false)/'
mutate files_of_others_are_kept test_msd visit_own \
	's/if \(file->owner != \(uint32_t\) geteuid\(\)\)\n\t\treturn;//'
mutate kept_by_a_like_name test_msd parse_name \
	's/ \|\|\s+!is_number\(end\)//'
mutate kept_at_a_like_time test_msd parse_name \
	's/strspn\(why \+ letters, "0123456789TZ"\) < \(size_t\) \(end - why\) - letters/false/'
mutate links_are_kept test_msd set_aside_list_all \
	's/AT_SYMLINK_NOFOLLOW/0/'
mutate block_believed_unseen test_snapshot read_block \
	's/if \(block_sum\(&reader->file->header, &block, place\) != block\.sum\)/if (false)/'
mutate block_anywhere test_snapshot snapshot.c:block_sum \
	's/const uint64_t place\[\] = \{header->key, block->offset, block->bytes\};/const uint64_t place[] = {0, block->offset, block->bytes};/' \
	snapshot_load \
	's/if \(reader\.sums != header->sums\)/if (false)/'
mutate header_believed_unseen test_snapshot read_header \
	's/if \(header->sum != header_sum\(header\)\)/if (false)/'
mutate any_length test_snapshot read_header \
	's/if \(header->file_bytes != \(uint64_t\) status\.st_size\)/if (false)/'
mutate any_version test_snapshot read_header \
	's/if \(header->version != SNAPSHOT_VERSION \|\| header->header_bytes != sizeof\(\*header\)\)/if (false)/'
mutate half_a_file_has_the_name test_snapshot snapshot_clean \
	's/!name_with\(path, SNAPSHOT_NEW, name\)/!name_with(path, "", name)/' \
	snapshot_save \
	's/rename\(name, path\) != 0/false/'
mutate header_written_first test_snapshot snapshot_load \
	's/memory->header->tenants, header->memory\.tenants, sizeof\(header->memory\.tenants\)\);/memory->header->tenants, header->memory.tenants, sizeof(header->memory.tenants));\n\t(void) name_segment(file, memory);/'
mutate zeroes_without_pages test_snapshot snapshot_load \
	's/if \(take_pages\(memory\) != FABRIC_OK\)/if (false)/' \
	take_pages \
	's/static FabricStatus\ntake_pages/static FabricStatus __attribute__((unused))\ntake_pages/'
mutate failed_save_stays test_snapshot snapshot_save \
	's/if \(status != FABRIC_OK && status != FABRIC_EXISTS\)\s+unlink\(name\);//s'
mutate free_units_saved test_snapshot unit_is_in_use \
	's/return unit >= first && memory->units\[unit\] != 0 && /return unit >= first \&\& /'
mutate locks_not_saved test_daemon table_area \
	's/tenant_is_known\(header, number\) \? MEMORY_LOCK_BYTES : 0/0/'
mutate instances_go_on test_snapshot begin_service \
	's/if \(header->saved\)\s+instances_fence\(server\);//s'
mutate saved_unmarked test_snapshot saved_save \
	's/server->memory\.header->saved = 1;//'
mutate ids_again test_daemon service_open_tables \
	's/if \(service->state == FABRIC_MEMORY_LOADED\)\s+tables_renumber\([^;]*;//s'
mutate second_signal_unheard test_daemon snapshot_go_on \
	's/return msd->stop_requested < \(saving \? MSD_STOPS_MAX : 1\);/return true;/'
mutate service_manager_not_asked test_daemon snapshot_go_on \
	's/EXTEND_TIMEOUT_USEC=%u\\nWATCHDOG=1\\nSTATUS=%s the snapshot: %llu of %llu MB",\s+SNAPSHOT_MORE_US, /STATUS=%s the snapshot: %llu of %llu MB",\n/s'
mutate room_not_looked_for test_snapshot check_room \
	's/if \(free_bytes >= needed\)/if (true)/'
mutate long_paths_are_cut test_snapshot write_line \
	's/message\[FABRIC_LOG_BYTES\]/message[FABRIC_DETAIL_BYTES]/'
