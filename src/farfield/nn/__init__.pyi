import farfield.models.networks.replace as _replace

from .attention.api import attention as attention
from .attention.flash.threads import share_threads as share_threads
from .attention.reference import reference as reference
from .bias import Bias as Bias
from .bias import T5Bias as T5Bias
from .bias import bias_of as bias_of
from .cache.certificate import CertificateError as CertificateError
from .cache.certificate import CertificateRow as CertificateRow
from .cache.certificate import CertificateTable as CertificateTable
from .cache.certificate import CertificateWarning as CertificateWarning
from .cache.streaming import LossChange as LossChange
from .cache.streaming import change_of_loss as change_of_loss
from .cache.streaming import stream_losses as stream_losses
from .decoder.blocks import Rope as Rope
from .decoder.blocks import Sinusoidal as Sinusoidal
from .decoder.config import FarfieldConfig as FarfieldConfig
from .decoder.interface import add_bias as add_bias
from .decoder.loss import token_losses as token_losses
from .decoder.loss import vocabulary_loss as vocabulary_loss
from .decoder.model import FarfieldDecoder as FarfieldDecoder
from .decoder.model import FarfieldForCausalLM as FarfieldForCausalLM
from .decoder.model import FarfieldForSequenceClassification as FarfieldForSequenceClassification
from .denormals import flush_denormals as flush_denormals

replace = _replace.replace
