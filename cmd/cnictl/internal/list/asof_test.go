package list

import (
	"testing"
	"time"

	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/daemon/api/introspect"
)

func TestAsOf(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 14, 2, 11, 0, time.UTC)
	fresh, old, ahead, n := now.Add(-freshFor), now.Add(-freshFor-time.Second), now.Add(time.Hour), 9
	for _, tt := range []struct {
		subnet introspect.Subnet
		want   string
		class  paint.Class
	}{
		{introspect.Subnet{Available: &n, AsOf: &fresh}, "5m", paint.Plain},
		{introspect.Subnet{Available: &n, AsOf: &ahead}, "0s", paint.Plain},
		{introspect.Subnet{Available: &n, AsOf: &old}, "5m1s (old)", paint.Dim},
		{introspect.Subnet{Available: &n}, "-", paint.Dim},
		{introspect.Subnet{Available: &n, AsOf: &time.Time{}}, "-", paint.Dim},
		{introspect.Subnet{AsOf: &old}, "5m1s", paint.Plain},
	} {
		if got, class := AsOf(tt.subnet, now); got != tt.want || class != tt.class {
			t.Errorf("%+v: %q %v, want %q %v", tt.subnet, got, class, tt.want, tt.class)
		}
	}
}
