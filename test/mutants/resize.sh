# Safeguards of other sizes. Sourced by test/mutations.

mutate cut_off_in_use test_resize segment_resize \
	's/if \(sizes\.region_bytes < used_end\)/if (false)/'
mutate size_before_file test_resize resize_region \
	's/(FabricStatus status = lengthen\(memory, segment_bytes\(region_bytes, pages\)\);)/size_store(&memory->header->region_bytes, region_bytes);\n\t$1/'
mutate longer_file_refused test_resize memory_map \
	's/header\.segment_bytes > \(uint64_t\) file\.st_size/header.segment_bytes != (uint64_t) file.st_size/'
mutate recovered_by_new_sizes test_server open_segment \
	's/if \(status == FABRIC_OK && kept\)\s+status = recover\(server, detail\);/if (status == FABRIC_OK \&\& kept)\n\t\tstatus = segment_resize(server, detail);\n\tif (status == FABRIC_OK \&\& kept)\n\t\tstatus = recover(server, detail);/s'
mutate more_than_asked_for test_resize size_allows \
	's/return used \+ \*bytes <= total;/return true;/; s/while \(\*bytes > EXTENT_MIN_BYTES && used \+ \*bytes > total\)/while (false)/'
mutate words_of_the_old_size test_resize make_room \
	's/\(end - first\) \/ FABRIC_UNIT_BYTES \* sizeof\(uint64_t\)\) != FABRIC_OK\)/UINT64_MAX) != FABRIC_OK \&\& first < end)/'
mutate marks_of_others_believed test_resize units_agree \
	's/if \(record != NULL && tenant != record->tenant\)/if (false)/'
mutate marks_of_nobody_stay test_resize units_agree \
	's/\t\tfabric_server_release\(service->server, offset, FABRIC_UNIT_BYTES\);\n(\t\t\+\+\*released)/$1/'
mutate trees_without_bound test_resize service_slot \
	's/if \(service->tables\.trees >= service->max_trees\)/if (false)/'
mutate sizes_of_the_snapshot test_snapshot open_segment \
	's/return loaded \? segment_resize\(server, detail\) :/return loaded ? FABRIC_OK :/'
mutate reserve_of_memory_granted test_service size_allows \
	's/uint64_t total = without_reserve\(service_bytes_total\(service\), first\);/uint64_t total = service_bytes_total(service);\n\t(void) first;/'
mutate reserve_of_quota_granted test_service quota_allows \
	's/uint64_t quota = without_reserve\(service_quota\(service, tenant\), first\);/uint64_t quota = service_quota(service, tenant);\n\t(void) first;/'
