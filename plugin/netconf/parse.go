package netconf

import (
	"encoding/json"
	"errors"
	"fmt"

	"cnictl/daemon/api/netnames"
)

// Kind tells the errors of Parse apart: they have different CNI codes.
type Kind uint8

const (
	NotJSON     Kind = iota + 1 // nothing can be read, or name has the wrong type
	NoName                      // name is missing
	BadName                     // name has characters that a name may not have
	BadVersion                  // cniVersion has the wrong type
	BadSettings                 // a key of ours has the wrong type or value
)

// Error is an unusable configuration.
type Error struct {
	Kind Kind
	Name string // of the network, for BadName
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// ErrVethPrefix is BadSettings: the prefix leaves no room for the hash.
var ErrVethPrefix = errors.New("conf.VethPrefix can be at most 4 characters long")

// Parse reads the configuration. Errors are *Error; with BadSettings the returned
// configuration has what could be read.
func Parse(stdin []byte) (NetConf, error) {
	conf, ok := parseUsual(stdin)
	if !ok {
		var err error
		if conf, err = parseAny(stdin); err != nil {
			return conf, err
		}
	}
	switch {
	case conf.Name == "":
		return conf, &Error{Kind: NoName, Err: errors.New("missing network name")}
	case !ValidName(conf.Name):
		return conf, &Error{Kind: BadName, Name: conf.Name, Err: errors.New("invalid characters found in network name")}
	case len(conf.VethPrefix) > netnames.MaxVethPrefix:
		return conf, &Error{Kind: BadSettings, Err: ErrVethPrefix}
	}
	return conf, nil
}

// ValidName is the rule of the CNI specification for network names and container
// ids: a letter or digit, then letters, digits, '_', '.' and '-'.
func ValidName(s string) bool {
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case i > 0 && (c == '_' || c == '.' || c == '-'):
		default:
			return false
		}
	}
	return s != ""
}

// parseAny reads with encoding/json, in the order in which a plugin built on
// containernetworking/cni looks at its input, so that the same mistake is reported.
func parseAny(stdin []byte) (NetConf, error) {
	var named struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(stdin, &named); err != nil {
		return NetConf{}, &Error{Kind: NotJSON, Err: fmt.Errorf("error unmarshall network config: %w", err)}
	}
	conf := defaults()
	err := json.Unmarshal(stdin, &conf)
	if err == nil {
		return conf, nil
	}
	if conf.Name == "" || !ValidName(conf.Name) {
		return conf, nil // the next complaint
	}
	var versioned struct {
		CNIVersion string `json:"cniVersion"`
	}
	if err := json.Unmarshal(stdin, &versioned); err != nil {
		return conf, &Error{Kind: BadVersion, Err: fmt.Errorf("decoding version from network config: %w", err)}
	}
	return conf, &Error{Kind: BadSettings, Err: fmt.Errorf("error loading config from args: %w", err)}
}
