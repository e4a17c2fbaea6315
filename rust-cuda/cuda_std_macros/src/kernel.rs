//! `#[kernel]`.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{
    Error, Expr, Ident, ItemFn, ReturnType, Safety, Token, Visibility, parse::Parse, parse::ParseStream, parse_quote,
};

/// Prefix of the statics that carry a kernel's launch bound to `cuda_builder`'s text pass.
const MAX_THREADS_PREFIX: &str = "__cuda_std_max_threads_";

struct Arguments {
    max_threads: Option<Expr>,
}

impl Parse for Arguments {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        if input.is_empty() {
            return Ok(Self { max_threads: None });
        }
        let name: Ident = input.parse()?;
        if name != "max_threads" {
            return Err(Error::new(name.span(), "expected `max_threads = N`"));
        }
        input.parse::<Token![=]>()?;
        Ok(Self { max_threads: Some(input.parse()?) })
    }
}

/// Expands the attribute.
pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> syn::Result<TokenStream> {
    let arguments: Arguments = syn::parse2(arguments)?;
    let mut function: ItemFn = syn::parse2(item)?;
    check(&function)?;

    let bound = arguments.max_threads.map(|threads| {
        let name = format_ident!("{MAX_THREADS_PREFIX}{}", function.sig.ident);
        quote! {
            #[cfg(target_arch = "nvptx64")]
            #[used]
            #[unsafe(no_mangle)]
            #[unsafe(link_section = ".gpu.max_threads")]
            #[allow(non_upper_case_globals)]
            static #name: u32 = #threads;
        }
    });
    function.attrs.push(parse_quote!(#[cfg_attr(target_arch = "nvptx64", unsafe(no_mangle))]));
    let host = function.clone();
    function.sig.abi = Some(parse_quote!(extern "ptx-kernel"));
    Ok(quote! {
        #bound
        #[cfg(target_arch = "nvptx64")]
        #function
        #[cfg(not(target_arch = "nvptx64"))]
        #host
    })
}

fn check(function: &ItemFn) -> syn::Result<()> {
    let signature = &function.sig;
    let fault = if !matches!(function.vis, Visibility::Public(_)) {
        "a kernel is `pub`: the host looks it up by name"
    } else if !matches!(signature.safety, Safety::Unsafe(_)) {
        "a kernel is `unsafe`: every launch reads and writes raw pointers"
    } else if !signature.generics.params.is_empty() {
        "a kernel has no generic parameters: write one thin kernel per instance"
    } else if !matches!(signature.output, ReturnType::Default) {
        "a kernel returns nothing: write results through pointers"
    } else if signature.abi.is_some() {
        "a kernel's ABI is given by the attribute"
    } else {
        return Ok(());
    };
    Err(Error::new(signature.ident.span(), fault))
}
