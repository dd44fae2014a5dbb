// A user of every protocol header: hooks that do nothing, and the step between them.
#include "core/protocol/packet.h"
#include "core/protocol/start.h"

struct erar_env {
  struct erar_config config;
  struct erar_operation operation;
  __u8 bytes[ERAR_MAX_FRAME_BYTES];
  struct erar_parked parked;
  __u64 word;
};

#define HOOK static inline __attribute__((unused))
HOOK const struct erar_config *erar_env_config(struct erar_env *env) { return &env->config; }
HOOK struct erar_operation *erar_env_operation(struct erar_env *env, __u32 slot) {
  return slot < ERAR_SLOTS ? &env->operation : 0;
}
HOOK __u8 *erar_env_segment(struct erar_env *env, __u32 index) {
  return index == 0 ? env->bytes : 0;
}
HOOK __u64 *erar_env_state(struct erar_env *env, __u32 index) {
  return index == 0 ? &env->word : 0;
}
HOOK __u8 *erar_env_parked_payload(struct erar_env *env, __u32 place) {
  return place == 0 ? env->bytes : 0;
}
HOOK struct erar_parked *erar_env_parked(struct erar_env *env, __u32 place) {
  return place == 0 ? &env->parked : 0;
}
HOOK __u8 *erar_env_data(struct erar_env *env) { return env->bytes; }
HOOK __u8 *erar_env_data_end(struct erar_env *env) { return env->bytes + sizeof(env->bytes); }
HOOK int erar_env_resize(struct erar_env *env, __u32 frame_bytes) {
  return env->word < frame_bytes;
}
HOOK int erar_env_load(struct erar_env *env, __u8 *to, __u32 bytes) {
  return to == env->bytes && bytes == 0;
}
HOOK int erar_env_save(struct erar_env *env, const __u8 *from, __u32 bytes) {
  return from == env->bytes && bytes == 0;
}
HOOK __u32 erar_env_combine(struct erar_env *env, const struct erar_packet *packet, __u32 index,
                            __u32 chunks) {
  return env->word ? packet->segment + index : chunks;
}
HOOK __u64 erar_env_sum_words(struct erar_env *env, __u32 chunks) { return env->word + chunks; }
HOOK __u64 *erar_env_mark(struct erar_env *env) { return &env->word; }
HOOK __u64 *erar_env_heard(struct erar_env *env, __u32 rank) { return rank == 0 ? &env->word : 0; }
HOOK __u32 erar_env_cpu(struct erar_env *env) { return (__u32)env->word; }
HOOK void erar_env_count(struct erar_env *env, __u32 counter, __u64 value) {
  env->word += counter + value;
}
HOOK void erar_env_complete(struct erar_env *env, struct erar_operation *operation) {
  env->word += operation->number;
}

#include "core/protocol/step.h"

int protocol_user(struct erar_env *env);
int protocol_user(struct erar_env *env) { return (int)erar_step(env, 0); }
