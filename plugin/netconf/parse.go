package netconf

import (
	"errors"
	"strconv"

	"cnictl/daemon/api/netnames"
)

// Kind classifies the errors of Parse, which map to different CNI codes.
type Kind uint8

const (
	NotJSON     Kind = iota + 1 // nothing can be parsed, or name has the wrong type
	NoName                      // name is missing
	BadName                     // name has invalid characters
	BadVersion                  // cniVersion has the wrong type
	BadSettings                 // a key of ours has the wrong type or value
)

// Error means that a configuration is unusable.
type Error struct {
	Kind  Kind
	Name  string // of the network, for BadName
	Field Field  // the key whose value is wrong, if any
	Err   error
}

// Field is a key with an unacceptable value.
type Field struct {
	Key      string // path of the key; empty means the configuration itself
	Value    string // JSON text, or "an object", "an array"; of any length
	Accepted string // empty if no value is at fault
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// ErrVethPrefix is a BadSettings error: the prefix leaves no room for the hash.
var ErrVethPrefix = errors.New("conf.VethPrefix can be at most 4 characters long")

const textNotJSON = "error unmarshall network config: "

// Parse parses the configuration. Errors are *Error; with BadSettings the returned
// configuration has what could be parsed.
func Parse(stdin []byte) (NetConf, error) {
	if err := checkSyntax(stdin); err != nil {
		return NetConf{}, &Error{Kind: NotJSON, Err: wrap(textNotJSON, err)}
	}
	d, conf := decoder{cursor: cursor{in: stdin}}, defaults()
	d.document(func(key string) { d.member(&conf, key) })
	if err := d.problem(conf.Name, "error loading config from args: "); err != nil {
		return conf, err
	}
	if len(conf.VethPrefix) > netnames.MaxVethPrefix {
		return conf, &Error{Kind: BadSettings, Err: ErrVethPrefix, Field: Field{
			Key: "vethPrefix", Value: strconv.Quote(conf.VethPrefix),
			Accepted: "at most " + strconv.Itoa(netnames.MaxVethPrefix) + " characters",
		}}
	}
	return conf, nil
}

var (
	errNoName  = errors.New("missing network name")
	errBadName = errors.New("invalid characters found in network name")
)

// wrapped is what fmt.Errorf returns for "text%w"; linking fmt would slow down every start
// of the plugin.
type wrapped struct {
	text string
	err  error
}

func wrap(text string, err error) error { return &wrapped{text, err} }

func (w *wrapped) Error() string { return w.text + w.err.Error() }
func (w *wrapped) Unwrap() error { return w.err }
