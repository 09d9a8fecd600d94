package hostnet

import "fmt"

// LinkName finds the name of the link with a MAC in the network namespace of the
// process. The error wraps [ErrNoLink] if there is none. The init container needs it,
// which has no Host: it has no iptables.
func LinkName(mac string) (string, error) {
	want, err := parseMAC(mac)
	if err != nil {
		return "", err
	}
	link, ok, err := findLink(want)
	switch {
	case err != nil:
		return "", fmt.Errorf("find link with MAC address %s: %w", mac, err)
	case !ok:
		return "", fmt.Errorf("find link with MAC address %s: %w", mac, ErrNoLink)
	}
	return link.Name, nil
}
