package whatif

// Differences lists where our daemon behaves differently from upstream's loop with these
// settings, and why. If pods arrive one at a time and none leaves, both hold the same
// unless the first line is about a target.
func Differences(s Settings) (why []string) {
	switch targets := s.WarmIP > 0 || s.MinimumIP > 0; {
	case s.WarmIP == 0 && s.MinimumIP > 0:
		why = append(why, "MINIMUM_IP_TARGET without WARM_IP_TARGET caps upstream's pool: pods beyond it get no address; ours grows when no address is free")
	case !targets && s.prefixes() && s.WarmPrefix == 0:
		why = append(why, "WARM_PREFIX_TARGET=0: on a full node upstream assigns and releases a prefix again and again; ours keeps it")
	case !targets && !s.prefixes() && s.WarmENI == 0:
		why = append(why, "WARM_ENI_TARGET=0: on a full node upstream attaches and detaches an interface again and again; ours keeps it")
	}
	return append(why, "upstream counts cooling addresses as available and checks every 5 s: an ADD that finds none fails at once; with ours it waits up to 10 s while the pool grows for it")
}
