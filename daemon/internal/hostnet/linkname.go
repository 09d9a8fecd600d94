package hostnet

import "fmt"

// LinkName finds the name of the link with a MAC in the process's network namespace. The
// error wraps [ErrNoLink] if there is none. It is for the init container, which has no
// Host because it has no iptables.
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
