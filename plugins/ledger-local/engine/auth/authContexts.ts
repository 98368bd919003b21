// The authorization context passed to a contract account's `__check_auth`: the calls that its signer is asked to allow,
// one value per call of the authorized tree.
import { AuthorizedFunctionType, ExecutableType, PreimageType } from "../xdr/types.ts"
import { executableVal } from "../host/executables.ts"
import { HostError } from "../host/HostError.ts"
import { address as addressVal, bytes, structMap, sym, vec } from "../xdr/ScVal.ts"
import type { ScVal, SorobanAuthorizedFunction, SorobanAuthorizedInvocation } from "../xdr/Xdr.ts"

const createContext = (fn: Exclude<SorobanAuthorizedFunction, { type: 0 }>): ScVal => {
  const args =
    fn.type === AuthorizedFunctionType.createContract
      ? { ...fn.createContractHostFn, constructorArgs: [] }
      : fn.createContractV2HostFn
  if (args.executable.type === ExecutableType.stellarAsset) {
    throw HostError.of(
      "Auth",
      "InvalidInput",
      "StellarAsset executable is not allowed when authorizing create_contract host fn"
    )
  }
  if (args.contractIdPreimage.type !== PreimageType.address) {
    throw HostError.of("Auth", "InvalidInput", "asset preimage is not allowed when authorizing create_contract host fn")
  }
  const executable = executableVal(args.executable)
  const salt = bytes(args.contractIdPreimage.fromAddress.salt)
  return args.constructorArgs.length === 0
    ? vec([sym("CreateContractHostFn"), structMap({ executable, salt })])
    : vec([
        sym("CreateContractWithCtorHostFn"),
        structMap({ constructor_args: vec(args.constructorArgs), executable, salt })
      ])
}

/** The authorization context that `__check_auth` gets: every node of the tree, parents first. */
export const authContexts = (invocation: SorobanAuthorizedInvocation): Array<ScVal> => {
  const fn = invocation.function
  const own =
    fn.type === AuthorizedFunctionType.contract
      ? vec([
          sym("Contract"),
          structMap({
            args: vec(fn.contractFn.args),
            contract: addressVal(fn.contractFn.contractAddress),
            fn_name: { type: 15, sym: fn.contractFn.functionName }
          })
        ])
      : createContext(fn)
  return [own, ...invocation.subInvocations.flatMap(authContexts)]
}
