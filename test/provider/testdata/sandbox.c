/* SPDX-License-Identifier: Apache-2.0
 *
 * sandbox PROGRAM ...: runs a program without the system calls that containers do not have:
 * those that the usual profiles of Docker and Podman refuse.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const int refused[] = {
	SYS_acct, SYS_add_key, SYS_bpf, SYS_clock_adjtime, SYS_clock_settime, SYS_delete_module, SYS_fanotify_init,
	SYS_finit_module, SYS_fsconfig, SYS_fsmount, SYS_fsopen, SYS_fspick, SYS_get_mempolicy, SYS_init_module,
	SYS_io_uring_enter, SYS_io_uring_register, SYS_io_uring_setup, SYS_ioperm, SYS_iopl, SYS_kcmp,
	SYS_kexec_file_load, SYS_kexec_load, SYS_keyctl, SYS_lookup_dcookie, SYS_mbind, SYS_mount, SYS_mount_setattr,
	SYS_move_mount, SYS_move_pages, SYS_name_to_handle_at, SYS_open_by_handle_at, SYS_open_tree,
	SYS_perf_event_open, SYS_personality, SYS_pidfd_getfd, SYS_pivot_root, SYS_process_vm_readv,
	SYS_process_vm_writev, SYS_ptrace, SYS_quotactl, SYS_reboot, SYS_request_key, SYS_set_mempolicy, SYS_setns,
	SYS_settimeofday, SYS_swapoff, SYS_swapon, SYS_sysfs, SYS_syslog, SYS_umount2, SYS_unshare, SYS_userfaultfd,
	SYS_vhangup,
};

enum { REFUSED = sizeof refused / sizeof *refused };

int main(int argc, char **argv)
{
	struct sock_filter code[2 * REFUSED + 4];
	struct sock_fprog filter = {.filter = code};

	code[filter.len++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (int i = 0; i < REFUSED; i++) {
		const unsigned call = (unsigned)refused[i];

		code[filter.len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1);
		code[filter.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	}
	/* its flags are in memory, where a filter cannot look: the C library takes clone then */
	code[filter.len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1);
	code[filter.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
	code[filter.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	if (argc < 2 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
		perror("sandbox PROGRAM ...");
		return 1;
	}
	if (syscall(SYS_unshare, 0) != -1 || errno != EPERM) {
		fprintf(stderr, "sandbox: the filter lets calls pass\n");
		return 1;
	}
	execv(argv[1], argv + 1);
	perror(argv[1]);
	return 1;
}
