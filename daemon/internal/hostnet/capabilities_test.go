package hostnet

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"cnictl/daemon/hostnet/rules"
)

func TestMissing(t *testing.T) {
	t.Parallel()
	const admin, raw = 1 << unix.CAP_NET_ADMIN, 1 << unix.CAP_NET_RAW
	for _, c := range []struct {
		backend   rules.Backend
		effective uint64
		want      []string // in the error
	}{
		{rules.NFTables, admin | raw, nil},
		{rules.NFTables, admin, nil},
		{rules.NFTables, raw, []string{"NET_ADMIN"}},
		{rules.IPTables, admin | raw, nil},
		{rules.IPTables, admin, []string{"NET_RAW"}},
		{rules.IPTables, raw, []string{"NET_ADMIN"}},
		{rules.IPTables, ^uint64(admin | raw), []string{"NET_ADMIN", "NET_RAW"}},
	} {
		err := missing(capabilities(c.backend), c.effective)
		if (err == nil) != (c.want == nil) {
			t.Errorf("%s with %x: error %v", c.backend, c.effective, err)
			continue
		}
		for _, name := range []string{"NET_ADMIN", "NET_RAW"} {
			named := err != nil && strings.Contains(err.Error(), name)
			wanted := strings.Contains(strings.Join(c.want, " "), name)
			if named != wanted {
				t.Errorf("%s with %x: %v, want exactly %v named", c.backend, c.effective, err, c.want)
			}
		}
	}
}
