// SPDX-License-Identifier: Apache-2.0
/*
 * UCX's part in the benchmark of messages and remote memory access: the loops of
 * c/transfer.h on its ucp API, both sides polling. UCX_TLS and UCX_NET_DEVICES choose
 * the transport.
 *
 *	ucx_transfer server TEST SIZE
 *	ucx_transfer client TEST SIZE FLIGHT SECONDS WARMUP WORKER MEMORY KEY
 *
 * The server prints the address of its WORKER, where its MEMORY begins, and the KEY to
 * it. The client says hello with the address of its own.
 */
#include <ucp/api/ucp.h>

#include "../../c/transfer.h"

#define HELLO 1 /* tags */
#define DATA 2
#define ALL UINT64_MAX        /* the bits of a tag */
#define MOST_ADDRESS 4096     /* bytes of a worker's address or of a key */

static struct {
	ucp_context_h context;
	ucp_worker_h worker;
	ucp_ep_h ep;
	ucp_address_t *address;
	size_t address_length;
	ucp_mem_h memory;
	ucp_rkey_h rkey;
	uint64_t base; /* of the server's memory */
	int greeted;   /* hello has been sent or has arrived */
} net;

static void must(ucs_status_t status, const char *call)
{
	if (status != UCS_OK)
		die("%s: %s", call, ucs_status_string(status));
}

static void open_worker(void)
{
	ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG | UCP_FEATURE_RMA};
	ucp_worker_params_t worker = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE, .thread_mode = UCS_THREAD_MODE_SINGLE};
	ucp_config_t *ucx;

	must(ucp_config_read(NULL, NULL, &ucx), "ucp_config_read");
	must(ucp_init(&params, ucx, &net.context), "ucp_init");
	ucp_config_release(ucx);
	must(ucp_worker_create(net.context, &worker, &net.worker), "ucp_worker_create");
	must(ucp_worker_get_address(net.worker, &net.address, &net.address_length), "ucp_worker_get_address");
}

static void connect_to(const void *address)
{
	ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS, .address = address};

	must(ucp_ep_create(net.worker, &params, &net.ep), "ucp_ep_create");
}

static void print_hex(const void *bytes, size_t length)
{
	putchar(' ');
	for (size_t i = 0; i < length; i++)
		printf("%02x", ((const uint8_t *)bytes)[i]);
}

static void parse_hex(const char *text, uint8_t *bytes)
{
	size_t length = strlen(text) / 2;

	if (length > MOST_ADDRESS)
		die("an address or a key of %zu bytes: want at most %d", length, MOST_ADDRESS);
	for (size_t i = 0; i < length; i++)
		if (sscanf(text + 2 * i, "%2hhx", bytes + i) != 1)
			die("%s: want hexadecimal digits", text);
}

/* Prints what a client has to know. */
static void publish(void)
{
	ucp_mem_map_params_t params = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
				       .address = memory, .length = sizeof(memory)};
	void *key;
	size_t length;

	must(ucp_mem_map(net.context, &params, &net.memory), "ucp_mem_map");
	must(ucp_rkey_pack(net.context, net.memory, &key, &length), "ucp_rkey_pack");
	printf("ready");
	print_hex(net.address, net.address_length);
	printf(" %llu", (unsigned long long)(uintptr_t)memory);
	print_hex(key, length);
	putchar('\n');
	ucp_rkey_buffer_release(key);
}

/* Returns 1, or 0 if there is no room for the operation now. */
static int posted(ucs_status_ptr_t request, const char *call)
{
	if (UCS_PTR_IS_ERR(request)) {
		if (UCS_PTR_STATUS(request) == UCS_ERR_NO_RESOURCE)
			return 0;
		must(UCS_PTR_STATUS(request), call);
	}
	return 1;
}

static void on_sent(void *request, ucs_status_t status, void *data)
{
	(void)data;
	must(status, "a message");
	ucp_request_free(request);
}

static void on_accessed(void *request, ucs_status_t status, void *data)
{
	(void)data;
	must(status, "a write, read or flush");
	told.accesses--;
	ucp_request_free(request);
}

static void on_arrived(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *data)
{
	(void)info;
	must(status, "a receive");
	tell_arrival((uintptr_t)data);
	ucp_request_free(request);
}

static void on_hello(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *data)
{
	(void)info, (void)data;
	must(status, "hello");
	net.greeted = 1;
	ucp_request_free(request);
}

static void on_hello_sent(void *request, ucs_status_t status, void *data)
{
	on_hello(request, status, NULL, data);
}

/* Waits with pauses, since whatever connects may need this core. */
static void wait_for_hello(uint64_t limit)
{
	for (uint64_t end = now_ns() + limit; !net.greeted && !stopped; usleep(200)) {
		transport_poll();
		if (now_ns() > end)
			die("no hello within %llu s", (unsigned long long)(limit / SECOND));
	}
}

static void transport_serve(char **argument, int count)
{
	static uint8_t address[MOST_ADDRESS];
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
				     .cb.recv = on_hello};

	(void)argument;
	if (count)
		die("%d arguments too many", count);
	open_worker();
	posted(ucp_tag_recv_nbx(net.worker, address, sizeof(address), HELLO, ALL, &param), "ucp_tag_recv_nbx");
	publish();
	wait_for_hello(LIMIT);
	if (net.greeted)
		connect_to(address);
}

static void transport_connect(char **argument, int count)
{
	static uint8_t bytes[MOST_ADDRESS];
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
				     .cb.send = on_hello_sent};

	if (count != 3)
		die("%d arguments: want WORKER MEMORY KEY", count);
	open_worker();
	parse_hex(argument[0], bytes);
	connect_to(bytes);
	net.base = strtoull(argument[1], NULL, 10);
	parse_hex(argument[2], bytes);
	must(ucp_ep_rkey_unpack(net.ep, bytes, &net.rkey), "ucp_ep_rkey_unpack");
	posted(ucp_tag_send_nbx(net.ep, net.address, net.address_length, HELLO, &param), "ucp_tag_send_nbx");
	wait_for_hello(STALL);
}

static int transport_send(const void *buffer, size_t length)
{
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK, .cb.send = on_sent};

	return posted(ucp_tag_send_nbx(net.ep, buffer, length, DATA, &param), "ucp_tag_send_nbx");
}

static int transport_receive(void *buffer, size_t length, unsigned slot)
{
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
				     .cb.recv = on_arrived, .user_data = (void *)(uintptr_t)slot};
	ucs_status_ptr_t request = ucp_tag_recv_nbx(net.worker, buffer, length, DATA, ALL, &param);

	if (!request) /* it was there already */
		tell_arrival(slot);
	return posted(request, "ucp_tag_recv_nbx");
}

static const ucp_request_param_t access_param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK, .cb.send = on_accessed};

/* Counts an access that was posted, unless it is complete. */
static int access_posted(ucs_status_ptr_t request, const char *call)
{
	if (!posted(request, call))
		return 0;
	told.accesses += request != NULL;
	return 1;
}

static int transport_write(const void *buffer, uint64_t offset, size_t length)
{
	return access_posted(ucp_put_nbx(net.ep, buffer, length, net.base + offset, net.rkey, &access_param), "ucp_put_nbx");
}

static int transport_read(void *buffer, uint64_t offset, size_t length)
{
	return access_posted(ucp_get_nbx(net.ep, buffer, length, net.base + offset, net.rkey, &access_param), "ucp_get_nbx");
}

/* A write completes when its buffer can be used again; a flush, when the writes before
 * it have arrived. A read needs none. */
static void transport_flush(void)
{
	if (config.test == WRITE)
		while (!access_posted(ucp_ep_flush_nbx(net.ep, &access_param), "ucp_ep_flush_nbx"))
			poll_or_fail(now_ns());
}

static void transport_poll(void)
{
	ucp_worker_progress(net.worker);
}

static void transport_close(void)
{
	if (net.rkey)
		ucp_rkey_destroy(net.rkey);
	if (net.memory)
		ucp_mem_unmap(net.context, net.memory);
	ucp_worker_release_address(net.worker, net.address);
	ucp_worker_destroy(net.worker);
	ucp_cleanup(net.context);
}
