// SPDX-License-Identifier: Apache-2.0

// Package fi has the objects of libfabric by their own names, for many operations in
// flight. Package xdpfab has calls that wait, to words, bytes and mailboxes of peers:
// xdpfab.Domain{Domain: d} has them for a domain of this package.
//
// The names of libfabric, and those here:
//
//	fi_getinfo       GetInfo             fi_dupinfo, fi_tostr                     Info.Clone, Info.String
//	fi_fabric        NewFabric           fi_atomic, fi_atomicmsg                  Endpoint.Atomic
//	fi_domain        Fabric.OpenDomain   fi_fetch_atomic, fi_fetch_atomicmsg      Endpoint.FetchAtomic
//	fi_endpoint      Domain.NewEndpoint  fi_compare_atomic, fi_compare_atomicmsg  Endpoint.CompareAtomic
//	fi_ep_bind       Endpoint.Bind       fi_inject_atomic                         Endpoint.InjectAtomic
//	fi_enable        Endpoint.Enable     fi_msg_atomic                            Msg
//	fi_getname       Endpoint.Name       fi_rma_ioc                               mr.Extent
//	fi_av_open       NewAddressVector    fi_atomicvalid                           Endpoint.AtomicValid
//	fi_av_insert     Insert              fi_query_atomic                          Domain.QueryAtomic
//	fi_cq_open       NewCompletionQueue  fi_cntr_open                             Domain.NewCounter
//	fi_cq_read       Read                fi_cntr_read                             Counter.Read
//	fi_cq_readerr    ReadErr             fi_cntr_wait                             Counter.Wait
//	fi_cq_sread      Wait                fi_close                                 Close
//	fi_cq_signal     Signal              fi_trywait                               TryWait
//	fi_cq_strerror   ProvErrno.String    FI_GETWAIT                               FD
//	fi_mr_reg        Domain.Register     fi_strerror                              Errno.Error
//	fi_poll_open     Domain.NewPollSet   fi_poll, fi_wait                         PollSet.Poll, Wait
//	fi_eq_open       Fabric.NewEventQueue, Domain.BindEQ
//	fi_scalable_ep   Domain.NewScalableEndpoint
//	fi_stx_context   NewSharedTransmit   fi_ep_alias                              Endpoint.Alias
//	FI_TRIGGER       Msg.Trigger         FI_QUEUE_WORK                            Domain.QueueWork
//	fi_read          Endpoint.Read       fi_write, fi_inject_write                Endpoint.Write, InjectWrite
//
// An operation is posted as one [Msg]. Datatypes and operations are those of the module's
// package atomic, such as atomic.Uint64 and atomic.Sum; memory is that of package mr.
// Values in buffers are little-endian.
//
// A method that returns an error fails with [ErrClosed] if its object is nil or a zero
// value, and with [ErrArgument] if its context is nil; that holds for domains, endpoints,
// queues, counters, address vectors, poll sets and the fabric. Methods without an error
// panic then.
package fi
