package kubeobject

import (
	"encoding/json"
	"testing"
)

// TestQuantity: only whole numbers as the API writes them are known; anything else is
// rejected quickly.
func TestQuantity(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		`"58"`: 58, `58`: 58, `"0"`: 0, `"1k"`: 1000,
		`""`: -1, `"-1"`: -1, `"58m"`: -1, `"1E-99999999"`: -1, `"99999999999999999999"`: -1, `null`: -1, `{}`: -1,
	} {
		var q Quantity
		if err := json.Unmarshal([]byte(text), &q); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if got := q.Value; want < 0 && got != nil || want >= 0 && (got == nil || *got != want) {
			t.Errorf("%s is %v, want %d", text, got, want)
		}
	}
}

// TestInstanceID: only EC2 has instance IDs.
func TestInstanceID(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"aws:///eu-west-1a/i-0123": "i-0123", "i-0123": "i-0123", "": "",
		"aws:///eu-west-1a/1234-abcd/fargate-ip-10-0-0-1": "", "kind://docker/kind/kind": "",
	} {
		if got := InstanceID(id); got != want {
			t.Errorf("%s: %q", id, got)
		}
	}
}
