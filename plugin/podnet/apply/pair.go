package apply

import (
	"errors"

	"golang.org/x/sys/unix"

	"cnictl/daemon/api/crashpoint"
	"cnictl/plugin/podnet/rules"
)

// pairTries limits how often the pair is tried with other indexes.
const pairTries = 64

// TryPair creates the pair of a pod's first interface before the caller knows whether the
// pod gets an address, and of what kind. It changes nothing that exists. Anything in the
// way, and the errors it causes, are left to Network.
func (s *Setup) TryPair(p rules.Pair) {
	if s.tryPair(p) == nil {
		s.early = setPairSysctls(p)
	}
}

// createPair creates the veth pair of interface i, with the host end up, and sets the host
// end's sysctls, unless TryPair did. An existing host link of the same name is deleted: an
// older sandbox of the pod left it. An interface of the pod end's name inside the pod is
// an error (EEXIST).
func (s *Setup) createPair(i int, p rules.Pair) error {
	if i < len(s.made) {
		if s.made[i].Host.Name == p.Host.Name {
			return s.early
		}
		return s.renameHost(i, p)
	}
	went := false
	for range pairTries {
		err := s.tryPair(p)
		if err == nil {
			break
		}
		next, err := s.makeRoom(p, err)
		switch {
		case errors.Is(err, errNothing) && !went:
			// The older sandbox's namespace is being removed, and its link disappeared
			// between the attempt and the check for what is in the way.
			went = true
		case err != nil:
			return err
		default:
			p = next
		}
	}
	if len(s.made) <= i {
		return failed(StepCreatePair, errors.New("no free interface index"))
	}
	return setPairSysctls(p)
}

// renameHost renames the host end of a pair that TryPair created, if it turns out to need
// another name: in strict mode the name for a pod with a branch ENI differs. Renaming is
// cheaper than recreating the pair, as deleting one waits for a grace period.
func (s *Setup) renameHost(i int, p rules.Pair) error {
	index := s.made[i].Host.Index
	rename := func() error {
		s.batch.Reset()
		s.batch.LinkDown(index)
		s.batch.LinkRename(index, p.Host.Name)
		s.batch.LinkUp(index)
		return s.host.Do(&s.batch)
	}
	err := rename()
	if errors.Is(err, unix.EEXIST) {
		if err := s.deleteOld(p.Host.Name); err != nil {
			return err
		}
		err = rename()
	}
	if err != nil {
		return failed(StepCreatePair, err)
	}
	s.made[i].Host.Name = p.Host.Name
	return setPairSysctls(p)
}

// deleteOld deletes the host link of an older sandbox.
func (s *Setup) deleteOld(name string) error {
	s.batch.Reset()
	s.batch.LinkDelName(name)
	s.batch.Tolerate(unix.ENODEV) // it went with its namespace
	if err := s.host.Do(&s.batch); err != nil {
		return failed(StepDeleteStale, err)
	}
	s.Replaced = true
	return nil
}

func (s *Setup) tryPair(p rules.Pair) error {
	s.batch.Reset()
	s.batch.Veth(p.Host, p.Pod, p.MTU, s.ns.fd)
	crashpoint.Here(crashpoint.PluginBeforeLink)
	err := s.host.Do(&s.batch)
	crashpoint.Here(crashpoint.PluginAfterLink)
	if err == nil {
		s.made = append(s.made, p)
	}
	return err
}

// makeRoom finds out why the pair could not be created, removes an old host link that is
// in the way, and returns the pair to try next.
func (s *Setup) makeRoom(p rules.Pair, why error) (rules.Pair, error) {
	switch {
	case errors.Is(why, unix.EBUSY): // an index in the pod's namespace
		p.Pod.Index++
		return p, nil
	case !errors.Is(why, unix.EEXIST):
		return p, failed(StepCreatePair, why)
	}
	stale, found, err := s.host.LinkByName(p.Host.Name)
	if err != nil {
		return p, failed(StepDeleteStale, err)
	}
	if found {
		s.batch.Reset()
		s.batch.LinkDel(stale.Index)
		s.batch.Tolerate(unix.ENODEV) // it went with its namespace
		crashpoint.Here(crashpoint.PluginBeforeOldLink)
		if err := s.host.Do(&s.batch); err != nil {
			return p, failed(StepDeleteStale, err)
		}
		crashpoint.Here(crashpoint.PluginAfterOldLink)
		s.Replaced = true
		return p, nil
	}
	_, found, err = s.host.LinkByIndex(p.Host.Index)
	if err != nil {
		return p, failed(StepCreatePair, err)
	}
	if found {
		p.Host.Index = rules.NextHostIndex(p.Host.Index)
		return p, nil
	}
	return p, failed(StepCreatePair, &nothingError{why}) // the name inside the pod
}

// errNothing means that nothing on the host was in the way of the pair.
var errNothing = errors.New("nothing on the host is in the way")

type nothingError struct{ why error }

func (e *nothingError) Error() string        { return e.why.Error() }
func (e *nothingError) Unwrap() error        { return e.why }
func (e *nothingError) Is(target error) bool { return target == errNothing }
