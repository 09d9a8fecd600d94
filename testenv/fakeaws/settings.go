package fakeaws

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"
)

// Settings are the timing and limits of a world that the control API shows and changes.
// A change applies only the members it contains.
type Settings struct {
	MetadataLag      *Duration           `json:"metadataLag,omitempty"`
	DescribeLag      *Duration           `json:"describeLag,omitempty"`
	AttachDelay      *Duration           `json:"attachDelay,omitempty"`
	DetachDelay      *Duration           `json:"detachDelay,omitempty"`
	Latency          map[string]Duration `json:"latency,omitempty"` // by action, "IMDS" too; those not named stay
	Throttle         *ThrottleSetting    `json:"throttle,omitempty"`
	Allow            *[]string           `json:"allow,omitempty"` // actions; [] none, ["*"] all
	ExhaustedAsValue *bool               `json:"exhaustedAsValue,omitempty"`
}

// ThrottleSetting is a request limit: "none", "account" (the documented buckets, see
// AccountBuckets) or the members of Throttle.
type ThrottleSetting struct{ Throttle *Throttle }

// ParseThrottle reads "none" or "account".
func ParseThrottle(s string) (*Throttle, error) {
	switch s {
	case "none":
		return nil, nil
	case "account":
		return AccountBuckets(), nil
	}
	return nil, fmt.Errorf("throttle %q: none or account is accepted", s)
}

// UnmarshalJSON reads "none", "account" or buckets.
func (t *ThrottleSetting) UnmarshalJSON(b []byte) error {
	var name string
	if json.Unmarshal(b, &name) == nil {
		var err error
		t.Throttle, err = ParseThrottle(name)
		return err
	}
	t.Throttle = new(Throttle)
	if err := strictJSON(b, t.Throttle); err != nil {
		return fmt.Errorf("throttle: %w", err)
	}
	return t.Throttle.check()
}

// MarshalJSON writes "none" or the buckets.
func (t ThrottleSetting) MarshalJSON() ([]byte, error) {
	if t.Throttle == nil {
		return []byte(`"none"`), nil
	}
	return json.Marshal(t.Throttle)
}

func (w *World) settings() Settings {
	return locked(&w.wire, func() Settings {
		l := &w.wire
		lag, listing, attach, detach := Duration(l.lag), Duration(l.describeLag), Duration(l.attach), Duration(l.detach)
		allow, asValue := []string{everyAction}, l.asValue
		if l.allow != nil {
			allow = slices.Clone(l.allow)
		}
		latency := make(map[string]Duration)
		for a, d := range l.latency {
			latency[a] = Duration(d)
		}
		return Settings{MetadataLag: &lag, DescribeLag: &listing, AttachDelay: &attach, DetachDelay: &detach, Latency: latency,
			Throttle: &ThrottleSetting{l.throttle}, Allow: &allow, ExhaustedAsValue: &asValue}
	})
}

func (s Settings) check() error {
	for a := range s.Latency {
		if _, known := actions[a]; !known && a != metadataAction {
			return fmt.Errorf("latency of %q: no such action", a)
		}
	}
	if s.Allow == nil || slices.Equal(*s.Allow, []string{everyAction}) {
		return nil
	}
	for _, a := range *s.Allow {
		if _, known := actions[a]; !known {
			return fmt.Errorf("allow %q: no such action", a)
		}
	}
	return nil
}

// Set changes the given settings: all of them or, on an error, none.
func (w *World) Set(s Settings) error {
	if err := s.check(); err != nil {
		return fmt.Errorf("change settings: %w", err)
	}
	for d, set := range map[*Duration]func(time.Duration){
		s.MetadataLag: w.SetMetadataLag, s.DescribeLag: w.SetDescribeLag, s.AttachDelay: w.SetAttachDelay, s.DetachDelay: w.SetDetachDelay,
	} {
		if d != nil {
			set(time.Duration(*d))
		}
	}
	for _, a := range slices.Sorted(maps.Keys(s.Latency)) {
		w.SetLatency(a, time.Duration(s.Latency[a]))
	}
	if s.Throttle != nil {
		w.SetThrottle(s.Throttle.Throttle)
	}
	switch {
	case s.Allow == nil:
	case slices.Equal(*s.Allow, []string{everyAction}):
		w.AllowAll()
	default:
		w.Allow(*s.Allow...)
	}
	if s.ExhaustedAsValue != nil {
		w.SetExhaustedAsValue(*s.ExhaustedAsValue)
	}
	return nil
}

func (c controlServer) set(r *http.Request) (any, error) {
	var s Settings
	if err := decode(r, &s); err != nil {
		return nil, err
	}
	if err := c.world.Set(s); err != nil {
		return nil, err
	}
	return c.world.settings(), nil
}
