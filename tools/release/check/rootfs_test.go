package check

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestRootfs: an archive that cannot be reached is said, is not taken for an update, and is an error
// where new lists are required, however new the old ones are. The archive has lists, and no packages.
func TestRootfs(t *testing.T) {
	for _, program := range []string{"apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(program); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatal(err)
			}
			t.Skip(err)
		}
	}
	script, err := filepath.Abs("../rootfs.sh")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(script)
	if err != nil {
		t.Fatal(err)
	}
	var list strings.Builder
	for name := range strings.FieldsSeq(regexp.MustCompile(`(?s)packages=\((.*?)\)`).FindStringSubmatch(string(text))[1]) {
		fmt.Fprintf(&list, "Package: %s\nVersion: 1\nArchitecture: all\nFilename: ./%s.deb\nSize: 1\nSHA256: %064d\n\n", name, name, 0)
	}
	archive := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if filepath.Base(r.URL.Path) != "Packages" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, list.String())
	}))
	t.Cleanup(archive.Close)
	dir := t.TempDir()
	sources := write(t, dir+"/sources.list", "deb [trusted=yes] "+archive.URL+" ./\n")
	t.Setenv("APT_CONFIG", write(t, dir+"/apt.conf", `Dir::Etc::sourcelist "`+sources+`"; Dir::Etc::sourceparts "/dev/null"; Acquire::Retries "0"; Acquire::http::Proxy "DIRECT";`))
	t.Setenv("CNI_TEST_CACHE", dir+"/cache")
	stamp := dir + "/cache/apt-amd64/updated"
	const old, none, unpacks = "could not be updated", "no lists of packages", "unpacking"
	says := func(fresh string, want ...string) {
		t.Helper()
		c := exec.CommandContext(t.Context(), script, "amd64")
		c.Env = append(os.Environ(), "FRESH="+fresh)
		text, err := c.CombinedOutput()
		if err == nil { // there are no packages to unpack
			t.Errorf("it succeeds: %s", text)
		}
		for _, part := range []string{old, none, unpacks} {
			expected := false
			for _, w := range want {
				expected = expected || w == part
			}
			if strings.Contains(string(text), part) != expected {
				t.Errorf("FRESH=%s: want %q: %s", fresh, want, text)
			}
		}
	}
	updated := func(want bool) {
		t.Helper()
		if _, err := os.Stat(stamp); (err == nil) != want {
			t.Errorf("lists count as updated: %v", err == nil)
		}
	}
	says("required", unpacks)
	updated(true)
	archive.Close()
	says("", unpacks) // of this day
	says("required", old)
	if err := os.Remove(stamp); err != nil {
		t.Fatal(err)
	}
	says("", old, unpacks)
	updated(false)
	if err := os.RemoveAll(dir + "/cache"); err != nil {
		t.Fatal(err)
	}
	says("", old, none)
	updated(false)
}
