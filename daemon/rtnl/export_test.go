package rtnl

import "net/netip"

// ParseAnswer runs every decoder on one datagram, for fuzzing.
func ParseAnswer(answer []byte) error {
	var b Batch
	b.LinkUp(1)
	b.LinkUp(2)
	if _, err := b.collect(answer, 1); err != nil {
		return err
	}
	_ = b.failure()
	for len(answer) > 0 {
		msg, rest, err := cutMessage(answer)
		if err != nil {
			return err
		}
		answer = rest
		_, _ = parseLink(msg.body)
		_, _, _ = parseRule(msg.body)
		_, _, _ = parseRoute(msg.body)
		_, _ = parseAddress(msg.body)
		var d flowDeleter
		_ = d.take(msg.body, func(netip.Addr) bool { return true })
	}
	return nil
}
