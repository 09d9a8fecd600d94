package iptables_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/iptables"
)

func TestParseSave_Errors(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ text, want string }{
		{"-A X -j Y\n", `parse output of iptables-save: line 1 "-A X -j Y", expected *<table> or a comment`},
		{"*nat\n:PREROUTING ACCEPT [0:0]\n", "parse output of iptables-save: it ends early, expected COMMIT of table nat"},
		{"*nat\n-A NOWHERE -j X\nCOMMIT\n", `parse output of iptables-save: line 2 "-A NOWHERE -j X", expected -A and a chain of table nat`},
		{"*nat\n:X\nCOMMIT\n", `parse output of iptables-save: line 2 ":X", expected :<chain> <policy> [<packets>:<bytes>]`},
		{"*nat\n*mangle\n", `parse output of iptables-save: line 2 "*mangle", expected COMMIT of table nat`},
		{"*nat\nCOMMIT\n*nat\nCOMMIT\n", `parse output of iptables-save: line 3 "*nat", expected each table once`},
		{"*nat\nhello\nCOMMIT\n", `parse output of iptables-save: line 2 "hello", expected -A <chain> <rule>`},
		{"*\n", `parse output of iptables-save: line 1 "*", expected *<table>`},
	} {
		_, err := iptables.ParseSave(row.text)
		var format *iptables.FormatError
		if !errors.As(err, &format) || err.Error() != row.want {
			t.Errorf("ParseSave(%q) = %v, want %s", row.text, err, row.want)
		}
	}
}

func TestParseSave_ForeignTable(t *testing.T) {
	t.Parallel()
	r, err := iptables.ParseSave("# Table `nat' is incompatible, use 'nft' tool.\n# Table `x' is fine\n")
	if err != nil || !cmp.Equal(r.Foreign, []string{"nat"}) {
		t.Errorf("Foreign = %q, %v", r.Foreign, err)
	}
}

// TestParseKnown: lines that ParseSave refuses are skipped, and the rest is parsed alike.
func TestParseKnown(t *testing.T) {
	t.Parallel()
	const good = "*nat\n:PREROUTING ACCEPT [0:0]\n:X - [0:0]\n-A PREROUTING -j X\n-A X -j RETURN\nCOMMIT\n"
	want, err := iptables.ParseSave(good)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		good,
		"-A X -j Y\n" + good,
		strings.Replace(good, ":X", "hello\n:Y\n:X", 1),
		strings.Replace(good, "-A X", "-A NOWHERE -j X\n-A X", 1),
		strings.TrimSuffix(good, "COMMIT\n"),
	} {
		if d := cmp.Diff(want, iptables.ParseKnown(text)); d != "" {
			t.Errorf("%q (-want +got):\n%s", text, d)
		}
	}
}
