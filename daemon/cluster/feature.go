package cluster

import "slices"

// AddFeature adds want to a CNINode's features and reports whether they changed. It
// replaces a feature that has another value. The API server does not treat the list as a
// map, so a name may appear twice: one right entry is enough, and the other entries cause
// no write. have is not modified.
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
