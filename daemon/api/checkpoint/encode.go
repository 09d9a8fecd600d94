package checkpoint

import (
	"iter"
	"slices"
	"strconv"

	"cnictl/daemon/api/logline"
	"cnictl/daemon/api/netnames"
)

const (
	head = `{"version":"` + netnames.CheckpointVersion + `","allocations":[`
	tail = "]}\n"
)

// Encode assembles a whole file from encoded entries, in the order given.
func Encode(entries iter.Seq[[]byte]) []byte { return Append(nil, entries) }

// Append does the same as Encode, into a buffer that the caller reuses.
func Append(dst []byte, entries iter.Seq[[]byte]) []byte {
	dst = append(dst, head...)
	first := true
	for e := range entries {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(dst, e...)
	}
	return append(dst, tail...)
}

// EncodeEntry encodes one entry as it appears in the file. The result is not shared.
func EncodeEntry(e Entry) []byte { return slices.Clip(AppendEntry(make([]byte, 0, 320), e)) }

// AppendEntry does the same as EncodeEntry, into the caller's buffer. The order of the
// members, and which are omitted when empty, follow upstream.
func AppendEntry(b []byte, e Entry) []byte {
	b = appendString(append(b, `{"networkName":`...), e.NetworkName)
	b = appendString(append(b, `,"containerID":`...), e.ContainerID)
	b = appendString(append(b, `,"ifName":`...), e.IfName)
	if e.IPv4.IsValid() {
		b = append(e.IPv4.AppendTo(append(b, `,"ipv4":"`...)), '"')
	}
	if e.IPv6.IsValid() {
		b = append(e.IPv6.AppendTo(append(b, `,"ipv6":"`...)), '"')
	}
	b = append(b, `,"allocationTimestamp":`...)
	if e.AllocatedAt.IsZero() {
		b = append(b, '0')
	} else {
		b = strconv.AppendInt(b, e.AllocatedAt.UnixNano(), 10)
	}
	return append(appendMetadata(append(b, `,"metadata":{`...), e), "}}"...)
}

func appendMetadata(b []byte, e Entry) []byte {
	comma := false
	member := func(name string) {
		if comma {
			b = append(b, ',')
		}
		b = append(b, name...)
		comma = true
	}
	if e.PodNamespace != "" {
		member(`"k8sPodNamespace":`)
		b = appendString(b, e.PodNamespace)
	}
	if e.PodName != "" {
		member(`"k8sPodName":`)
		b = appendString(b, e.PodName)
	}
	if e.Interfaces != 0 {
		member(`"interfacesCount":`)
		b = strconv.AppendInt(b, int64(e.Interfaces), 10)
	}
	return b
}

// appendString quotes s and escapes <, > and &, as upstream does.
func appendString(b []byte, s string) []byte { return logline.AppendQuotedJSON(b, s) }
