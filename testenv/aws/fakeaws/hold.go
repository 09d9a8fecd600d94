package fakeaws

// Settle ends the hold of an ENI's attachment: one stuck in "attaching" or "detaching"
// completes, and a missing link appears. Without a hold it does nothing.
func (w *World) Settle(eniID string) error {
	return w.update(func() error {
		e := w.enis[eniID]
		if e == nil {
			return noENI(eniID)
		}
		id := e.Attachment.ID
		switch {
		case e.Attachment.Status == statusDetaching:
			w.completeDetach(e, id)
		case e.Attachment.Status == statusAttaching:
			w.held[id] = ""
			w.completeAttach(e, id)
		case w.held[id] == HoldLink:
			delete(w.held, id)
			w.emit(w.eniChange(ENIAttached, e, nil))
		}
		return nil
	})
}

// completeAttach makes an attachment "attached", unless it has ended or is detaching. The
// caller holds mu.
func (w *World) completeAttach(e *ENI, attachmentID string) {
	if e.Attachment.ID != attachmentID || e.Attachment.Status != statusAttaching {
		return
	}
	e.Attachment.Status = statusAttached
	if w.held[attachmentID] == "" {
		delete(w.held, attachmentID)
		w.emit(w.eniChange(ENIAttached, e, nil))
	}
	w.refreshENI(e)
}

// completeDetach ends an attachment unless it has already ended. The caller holds mu.
func (w *World) completeDetach(e *ENI, attachmentID string) {
	if e.Attachment.ID != attachmentID {
		return
	}
	instanceID := e.Attachment.InstanceID
	w.unlink(e)
	w.refreshViews(func(i *instance) bool { return i.ID == instanceID })
}

// unlink removes an ENI from its instance. Subscribers are notified if they were notified of
// the attachment. The caller holds mu.
func (w *World) unlink(e *ENI) {
	if _, held := w.held[e.Attachment.ID]; !held {
		w.emit(w.eniChange(ENIDetached, e, nil))
	}
	delete(w.held, e.Attachment.ID)
	e.Attachment, e.Status = Attachment{}, statusAvailable
}
