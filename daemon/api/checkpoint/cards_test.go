package checkpoint

import "testing"

func TestCardOfName(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		first, name string
		card        int // 0: none
	}{
		{"ipam.json", "ipam-nic-1.json", 1},
		{"ipam.json", "ipam-nic-127.json", 127},
		{"ipam.json", "ipam-nic-128.json", 0},
		{"ipam.json", "ipam-nic-0.json", 0},
		{"ipam.json", "ipam-nic-01.json", 0},
		{"ipam.json", "ipam-nic-+1.json", 0},
		{"ipam.json", "ipam-nic--1.json", 0},
		{"ipam.json", "ipam-nic-1", 0},
		{"ipam.json", "ipam-nic-1.json.corrupt", 0},
		{"ipam.json", "ipam-nic-.json", 0},
		{"ipam.json", "ipam.json", 0},
		{"ipam.json", "xipam-nic-1.json", 0},
		{"ipam", "ipam-nic-3", 3},
		{"ipam", "ipam-nic-3.json", 0},
		{"ipam0.json", "ipam0-nic-3.json", 3},
		{"ipam0.json", "ipam1-nic-3.json", 0},
	} {
		card, ok := CardOfName(row.first, row.name)
		if ok != (row.card > 0) || ok && card != row.card {
			t.Errorf("%s beside %s: card %d, %v; want %d", row.name, row.first, card, ok, row.card)
		}
	}
}
