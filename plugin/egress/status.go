package egress

import (
	"cnictl/daemon/api/cause"
	"cnictl/plugin/skel"
)

// status is the STATUS command: it reports whether an ADD would find what it needs,
// including host-local's own STATUS.
func (c *command) status() *skel.Error {
	if !c.conf.On() {
		return nil
	}
	bad := func(why cause.Code, msg, details string) *skel.Error {
		return &skel.Error{Code: skel.CodeNotAvailable, Msg: msg, Cause: why, Details: details}
	}
	nodeIP, failure := c.nodeIP()
	if failure != nil {
		return bad(failure.Cause, failure.Msg, failure.Details)
	}
	if _, err := c.conf.LinkMTU(); err != nil {
		return bad(cause.InvalidConfig, textParse+err.Error(), skel.SettingDetails(err))
	}
	if _, err := c.openNAT(nodeIP.Is6()); err != nil {
		return bad(cause.PodNetworkSetup, err.Error(), "")
	}
	if err := c.run("STATUS"); err != nil {
		failure := ipamError(err)
		return bad(failure.Cause, failure.Msg, failure.Details)
	}
	return nil
}
