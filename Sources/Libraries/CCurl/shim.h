#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

// The library is not linked: it is loaded when needed. These are the types of its functions.
#define FUNCTION(name) typedef __typeof__(name) *name##_f
FUNCTION(curl_global_init);
FUNCTION(curl_easy_init);
FUNCTION(curl_easy_reset);
FUNCTION(curl_easy_cleanup);
FUNCTION(curl_easy_strerror);
FUNCTION(curl_slist_append);
FUNCTION(curl_slist_free_all);
FUNCTION(curl_multi_init);
FUNCTION(curl_multi_add_handle);
FUNCTION(curl_multi_remove_handle);
FUNCTION(curl_multi_perform);
FUNCTION(curl_multi_poll);
FUNCTION(curl_multi_info_read);
FUNCTION(curl_multi_cleanup);
#undef FUNCTION

// Swift cannot call variadic functions, so there is one function for each kind of argument.
typedef CURLcode (*shim_setopt_f)(CURL *, CURLoption, ...);
typedef CURLcode (*shim_getinfo_f)(CURL *, CURLINFO, ...);
typedef size_t (*shim_data_f)(char *, size_t, size_t, void *);

static inline CURLcode shim_set_number(void *setopt, CURL *handle, CURLoption option, long value) {
  return ((shim_setopt_f)setopt)(handle, option, value);
}
static inline CURLcode shim_set_pointer(void *setopt, CURL *handle, CURLoption option, const void *value) {
  return ((shim_setopt_f)setopt)(handle, option, value);
}
static inline CURLcode shim_set_callback(void *setopt, CURL *handle, CURLoption option, shim_data_f value) {
  return ((shim_setopt_f)setopt)(handle, option, value);
}
static inline CURLcode shim_set_authorities(void *setopt, CURL *handle, const void *data, size_t size) {
  struct curl_blob blob = {(void *)data, size, CURL_BLOB_COPY};
  return ((shim_setopt_f)setopt)(handle, CURLOPT_CAINFO_BLOB, &blob);
}
static inline CURLcode shim_get_number(void *getinfo, CURL *handle, CURLINFO info, long *value) {
  return ((shim_getinfo_f)getinfo)(handle, info, value);
}
static inline CURLcode shim_get_certificates(void *getinfo, CURL *handle, struct curl_certinfo **value) {
  return ((shim_getinfo_f)getinfo)(handle, CURLINFO_CERTINFO, value);
}
