package evidence

import "testing"

func TestParseVersion(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"v1.23.1": "v1.23.1", "1.23": "v1.23.0", "v1.22.4-eksbuild.2": "v1.22.4", "v1.23.0+dirty": "v1.23.0",
		"registry.example:5000/amazon-k8s-cni:v1.20.2-eksbuild.1": "v1.20.2", "v1.2.3@sha256:00": "v1.2.3",
		"": "", "latest": "", "v1.2.3.4": "", "v1.-2": "", "registry.example:5000/image": "",
	} {
		got, ok := ParseVersion(text)
		if ok != (want != "") || ok && got.String() != want {
			t.Errorf("ParseVersion(%q) = %v, %v; want %q", text, got, ok, want)
		}
	}
	old, _ := ParseVersion("v1.9.10")
	if next, _ := ParseVersion("v1.10.0"); !old.Before(next) || next.Before(old) || old.Before(old) {
		t.Error("v1.9.10 is older than v1.10.0, and than nothing else here")
	}
}
