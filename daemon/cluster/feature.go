package cluster

import "slices"

// AddFeature returns what a CNINode's features are when it has those of want, and
// whether that differs. A feature that is there with another value is replaced; the
// list is no map to the API server, so a name may come twice: one right entry is
// enough, and no write follows from the others. have is left as it is.
func AddFeature(have []Feature, want ...Feature) (features []Feature, changed bool) {
	features = slices.Clone(have)
	for _, w := range want {
		if slices.Contains(features, w) {
			continue
		}
		changed = true
		at := slices.IndexFunc(features, func(f Feature) bool { return f.Name == w.Name })
		if at < 0 {
			features = append(features, w)
			continue
		}
		features[at] = w
		tail := slices.DeleteFunc(features[at+1:], func(f Feature) bool { return f.Name == w.Name })
		features = features[:at+1+len(tail)]
	}
	return features, changed
}
