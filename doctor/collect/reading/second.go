package reading

import (
	"maps"
	"slices"

	"cnictl/doctor/evidence"
)

// ContinueLogs makes the logs of a second reading begin with those of the first, as in evidence
// files. Otherwise different older lines would be kept and folded.
func ContinueLogs(first, second *evidence.Reading) {
	for _, l := range []struct {
		first, second *evidence.Source[evidence.Log]
	}{
		{&first.LogIPAMD, &second.LogIPAMD}, {&first.LogPlugin, &second.LogPlugin}, {&first.LogAgent, &second.LogAgent},
		{&first.LogKubelet, &second.LogKubelet},
	} {
		if l.first.OK() && l.second.OK() {
			l.second.Content = continued(l.first.Content, l.second.Content)
		}
	}
	if !first.LogAWSNode.OK() || !second.LogAWSNode.OK() {
		return
	}
	containers := maps.Clone(second.LogAWSNode.Content)
	for name, log := range containers {
		if before, ok := first.LogAWSNode.Content[name]; ok {
			containers[name] = continued(before, log)
		}
	}
	second.LogAWSNode.Content = containers
}

// continued returns the first log plus what is newer in the second.
func continued(first, second evidence.Log) evidence.Log {
	out := evidence.Log{
		From: first.From, To: later(first.To, second.To), Truncated: first.Truncated || second.Truncated,
		Lines: slices.Clone(first.Lines), Previous: second.Previous,
	}
	for _, line := range second.Lines {
		if !line.At.After(first.To) {
			continue
		}
		if line.Every > 0 { // some of its repetitions may be older
			line.Count = min(line.Count, int((line.At.Sub(first.To)+line.Every-1)/line.Every))
		}
		out.Lines = append(out.Lines, line)
	}
	switch {
	case first.Previous != nil && second.Previous != nil:
		previous := continued(*first.Previous, *second.Previous)
		out.Previous = &previous
	case first.Previous != nil:
		out.Previous = first.Previous
	}
	return out
}
