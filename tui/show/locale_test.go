package show

import "testing"

func TestUTF8(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		all, ctype, lang string
		want             bool
	}{
		{"", "", "", false},
		{"", "", "C", false},
		{"", "", "POSIX", false},
		{"", "", "C.UTF-8", true},
		{"", "", "de_DE.utf8", true},
		{"", "", "de_DE.ISO-8859-1", false},
		{"C", "C.UTF-8", "C.UTF-8", false},
		{"", "C", "C.UTF-8", false},
		{"", "en_US.UTF-8", "C", true},
		{"en_US.UTF-8", "C", "C", true},
	} {
		env := map[string]string{"LC_ALL": tt.all, "LC_CTYPE": tt.ctype, "LANG": tt.lang}
		if got := UTF8(func(name string) string { return env[name] }); got != tt.want {
			t.Errorf("%v: %v", env, got)
		}
	}
}
