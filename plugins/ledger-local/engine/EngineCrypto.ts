// The synchronous cryptography that the engine needs: the service behind the kernel's port, given in by its caller.
import type { Crypto } from "../../../kernel/platform/Crypto.ts"

export type EngineCrypto = Crypto["Service"]
